// SPDX-License-Identifier: Apache-2.0
#include "model/nic/contexts/icm_map.h"

#include <algorithm>

namespace rnicsim::nic {
namespace {

// Object numbers have 24 bits; page indices are in no packet and no key.
constexpr std::uint64_t kObjects = 1u << 24;
constexpr std::uint64_t kPages = 1ull << 32;

std::uint64_t index_space(IcmTable table) { return table == IcmTable::mtt ? kPages : kObjects; }

}  // namespace

bool IcmMap::map(IcmTable table, std::uint32_t first, std::uint32_t count, std::uint64_t memory) {
  const auto which = static_cast<std::size_t>(table);
  if (which >= kTables || count == 0 || std::uint64_t{first} + count > index_space(table)) return false;
  auto& ranges = ranges_[which];
  const auto next = ranges.lower_bound(first);
  if (next != ranges.end() && next->first < std::uint64_t{first} + count) return false;
  if (next != ranges.begin()) {
    const auto previous = std::prev(next);
    if (std::uint64_t{previous->first} + previous->second.count > first) return false;
  }
  ranges.emplace(first, Range{count, memory});
  return true;
}

bool IcmMap::unmap(IcmTable table, std::uint32_t first, std::uint32_t count) {
  const auto which = static_cast<std::size_t>(table);
  if (which >= kTables) return false;
  const auto range = ranges_[which].find(first);
  if (range == ranges_[which].end() || range->second.count != count) return false;
  ranges_[which].erase(range);
  return true;
}

bool IcmMap::covers(IcmTable table, std::uint32_t first, std::uint32_t count) const {
  const auto which = static_cast<std::size_t>(table);
  if (which >= kTables) return false;
  const auto& ranges = ranges_[which];
  const std::uint64_t end = std::uint64_t{first} + count;
  std::uint64_t reached = first;
  auto range = ranges.upper_bound(first);
  if (range != ranges.begin()) --range;
  for (; reached < end && range != ranges.end() && range->first <= reached; ++range)
    reached = std::max(reached, std::uint64_t{range->first} + range->second.count);
  return reached >= end;
}

std::optional<std::uint64_t> IcmMap::address(IcmTable table, std::uint32_t index) const {
  const auto which = static_cast<std::size_t>(table);
  if (which >= kTables) return std::nullopt;
  auto range = ranges_[which].upper_bound(index);
  if (range == ranges_[which].begin()) return std::nullopt;
  --range;
  const auto offset = index - range->first;
  if (offset >= range->second.count) return std::nullopt;
  return range->second.memory + std::uint64_t{offset} * entry_bytes_[which];
}

}  // namespace rnicsim::nic
