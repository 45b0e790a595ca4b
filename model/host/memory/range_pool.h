// SPDX-License-Identifier: Apache-2.0
// Ranges of indices: first fit; adjacent gaps are merged.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace rnicsim::host {

class RangePool {
 public:
  RangePool() = default;
  explicit RangePool(std::uint32_t size);

  // The first index of a range of `count` indices; nullopt: no gap is large enough. `count` 0 always succeeds.
  std::optional<std::uint32_t> take(std::uint32_t count) { return take(count, 1); }
  // The first index is a multiple of `alignment`.
  std::optional<std::uint32_t> take(std::uint32_t count, std::uint64_t alignment);
  // `first` and `count` as they were taken.
  void give_back(std::uint32_t first, std::uint32_t count);

 private:
  std::map<std::uint32_t, std::uint32_t> gaps_;  // count by first
};

}  // namespace rnicsim::host
