// SPDX-License-Identifier: Apache-2.0
#include "sim/processes/in_order.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "model/base/byte_stream.h"
#include "model/base/kernel.h"

namespace rnicsim::sim {
namespace {

constexpr auto place_of = [](const auto& held) { return std::tuple(held.at, held.node, held.origin); };

}  // namespace

InOrder::InOrder(Boundary* boundary, Then then) : boundary_(boundary), then_(std::move(then)) {
  if (boundary_ != nullptr) boundary_->add(*this);
}

void InOrder::add(Duration at, std::uint32_t node, Origin origin, std::span<const std::byte> note) {
  if (boundary_ != nullptr && !boundary_->is_here(node)) return;
  if (boundary_ == nullptr && !held_.empty() && held_.back().at != at) pass_on(at);
  hold({.at = at, .node = node, .origin = origin}, note);
}

void InOrder::hold(const Held& place, std::span<const std::byte> note) {
  is_sorted_ &= held_.empty() || !(place_of(place) < place_of(held_.back()));
  auto& held = held_.emplace_back(place);
  held.begin = used_;
  held.bytes = note.size();
  if (notes_.size() - used_ < note.size()) notes_.resize(2 * (used_ + note.size()));
  std::memcpy(notes_.data() + used_, note.data(), note.size());
  used_ += note.size();
}

Message InOrder::report() {
  Message report;
  ByteWriter out(report);
  for (const auto& held : held_) {
    out.put(held);
    out.put_bytes(std::span(notes_).subspan(held.begin, held.bytes));
  }
  held_.clear();
  used_ = 0;
  return report;
}

void InOrder::take(std::span<const std::byte> report) {
  for (ByteReader in(report); !in.at_end();) {
    const auto place = in.take<Held>();
    hold(place, in.take_bytes());
  }
}

// Notes handed over at the last exchange were made after it, and may have earlier times: pass on only up to that
// exchange.
void InOrder::all_told() { pass_on(std::exchange(met_, now())); }

void InOrder::pass_on(Duration before) {
  if (!is_sorted_) std::ranges::stable_sort(held_, {}, place_of);
  is_sorted_ = true;
  const auto note_of = [](const Held& held, const std::vector<std::byte>& notes) {
    return std::span<const std::byte>(notes).subspan(held.begin, held.bytes);
  };
  if (!held_.empty() && held_.back().at < before) {  // all of them
    for (const auto& held : held_) then_(held.at, held.node, note_of(held, notes_));
    held_.clear();
    used_ = 0;
    return;
  }
  held_.swap(passing_);
  notes_.swap(passing_notes_);
  used_ = 0;
  for (const auto& held : passing_) {
    const auto note = note_of(held, passing_notes_);
    held.at < before ? then_(held.at, held.node, note) : hold(held, note);
  }
  passing_.clear();
}

}  // namespace rnicsim::sim
