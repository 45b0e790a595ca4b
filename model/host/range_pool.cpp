#include "model/host/range_pool.h"

#include <algorithm>
#include <iterator>

namespace rnicsim::host {

RangePool::RangePool(std::uint32_t size) {
  if (size != 0) gaps_.emplace(0, size);
}

std::optional<std::uint32_t> RangePool::take(std::uint32_t count) {
  if (count == 0) return 0;
  const auto gap = std::ranges::find_if(gaps_, [count](const auto& entry) { return entry.second >= count; });
  if (gap == gaps_.end()) return std::nullopt;
  const auto [first, size] = *gap;
  gaps_.erase(gap);
  if (size != count) gaps_.emplace(first + count, size - count);
  return first;
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
