// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/time/parked_loop.h"

#include <algorithm>
#include <cstring>

namespace rnicsim::sim {
namespace {

constexpr std::uint64_t kLongestPeriod = 1'000'000'000'000;  // 1 s, in ps

bool in_order(const std::vector<abi::LoopLook>& looks, std::uint64_t period) {
  std::uint64_t last = 0;
  for (const abi::LoopLook& look : looks) {
    if (look.begins < last || look.ends <= look.begins || look.ends > period) return false;
    last = look.ends;
  }
  return !looks.empty() && looks.front().begins == 0;
}

}  // namespace

std::optional<ParkedLoop> ParkedLoop::from(const abi::ThreadSlot& slot) {
  const std::uint64_t period = slot.argument[1], looks = slot.argument[2], pages = slot.argument[3];
  if (period > kLongestPeriod || looks > abi::kMostLoopLooks || pages > abi::kMostLoopPages + 1) return {};
  ParkedLoop loop;
  loop.looks_.resize(looks);
  std::memcpy(loop.looks_.data(), slot.input, looks * sizeof(abi::LoopLook));
  if (!in_order(loop.looks_, period)) return {};
  loop.reads_any_page_ = pages > abi::kMostLoopPages;
  if (!loop.reads_any_page_) {
    loop.pages_.resize(pages);
    std::memcpy(loop.pages_.data(), slot.input + looks * sizeof(abi::LoopLook), pages * sizeof(std::uint64_t));
    std::ranges::sort(loop.pages_);
  }
  loop.begins_ = {std::int64_t(std::min(slot.argument[5], slot.now))};
  loop.period_ = {std::int64_t(period)};
  return loop;
}

bool ParkedLoop::sees(std::uint64_t address, std::uint64_t bytes) const {
  if (reads_any_page_) return true;
  const auto page = std::ranges::lower_bound(pages_, address / abi::kLoopPage * abi::kLoopPage);
  return page != pages_.end() && *page < address + bytes;
}

ParkedLoop::Look ParkedLoop::first_look(Duration visible) const {
  const std::int64_t wanted = (visible - begins_).ps;
  const auto last = std::int64_t(looks_.back().ends);
  const std::int64_t rounds = wanted > last ? (wanted - last + period_.ps - 1) / period_.ps : 0;
  const Duration round = begins_ + period_ * rounds;
  const auto ends = [&](const abi::LoopLook& look) { return round + Duration{std::int64_t(look.ends)}; };
  auto look = std::ranges::lower_bound(looks_, visible, {}, ends);
  if (look == looks_.end()) --look;
  return {std::uint32_t(look - looks_.begin()), round + Duration{std::int64_t(look->begins)}, ends(*look)};
}

}  // namespace rnicsim::sim
