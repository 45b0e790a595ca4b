// SPDX-License-Identifier: Apache-2.0
#include "model/host/memory/range_pool.h"

#include <iterator>

namespace rnicsim::host {

RangePool::RangePool(std::uint32_t size) {
  if (size != 0) gaps_.emplace(0, size);
}

std::optional<std::uint32_t> RangePool::take(std::uint32_t count, std::uint64_t alignment) {
  if (count == 0) return 0;
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    const auto [first, size] = *gap;
    const auto skipped = (alignment - first % alignment) % alignment;
    if (skipped > size || size - skipped < count) continue;
    const auto taken = first + static_cast<std::uint32_t>(skipped);
    const auto left = size - static_cast<std::uint32_t>(skipped) - count;
    gaps_.erase(gap);
    if (skipped != 0) gaps_.emplace(first, static_cast<std::uint32_t>(skipped));
    if (left != 0) gaps_.emplace(taken + count, left);
    return taken;
  }
  return std::nullopt;
}

void RangePool::give_back(std::uint32_t first, std::uint32_t count) {
  if (count == 0) return;
  const auto next = gaps_.lower_bound(first);
  if (next != gaps_.end() && next->first == first + count) {
    count += next->second;
    gaps_.erase(next);
  }
  const auto behind = gaps_.lower_bound(first);
  if (behind != gaps_.begin()) {
    const auto previous = std::prev(behind);
    if (previous->first + previous->second == first) {
      previous->second += count;
      return;
    }
  }
  gaps_.emplace(first, count);
}

}  // namespace rnicsim::host
