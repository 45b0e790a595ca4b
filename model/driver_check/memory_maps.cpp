// SPDX-License-Identifier: Apache-2.0
#include "model/driver_check/memory_maps.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace rnicsim::driver_check {
namespace {

auto interval(std::uint64_t address, std::uint64_t bytes) {
  return boost::icl::interval<std::uint64_t>::right_open(address, address + bytes);
}

}  // namespace

void MemoryMaps::map(Pasid pasid, std::uint64_t address, std::uint64_t bytes) {
  if (bytes != 0) live_[pasid] += std::pair(interval(address, bytes), 1);
}

void MemoryMaps::unmap(Pasid pasid, std::uint64_t address, std::uint64_t bytes, Duration at) {
  if (bytes == 0) return;
  live_[pasid] -= std::pair(interval(address, bytes), 1);
  gone_.push_back({pasid, address, bytes, at});
  if (gone_.size() > kMostGone) gone_.pop_front();
}

bool MemoryMaps::is_mapped(Pasid pasid, std::uint64_t address) const {
  const auto space = live_.find(pasid);
  if (space == live_.end()) return false;
  const auto found = space->second.find(address);
  return found != space->second.end() && found->second > 0;
}

std::optional<Duration> MemoryMaps::unmapped_at(Pasid pasid, std::uint64_t address, std::uint64_t bytes) const {
  const auto hit = [&](const Gone& gone) {
    return gone.pasid == pasid && address < gone.address + gone.bytes && gone.address < address + bytes &&
           !is_mapped(pasid, std::max(address, gone.address));
  };
  const auto newest_first = std::views::reverse(gone_);
  const auto found = std::ranges::find_if(newest_first, hit);
  return found != newest_first.end() ? std::optional(found->at) : std::nullopt;
}

}  // namespace rnicsim::driver_check
