// SPDX-License-Identifier: Apache-2.0
// Numbers of objects. A number that was given back is given out again as late as possible, so that a stale reference
// finds no object. The order depends only on the calls.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace rnicsim::host {

class NumberPool {
 public:
  NumberPool() = default;
  NumberPool(std::uint32_t first, std::uint32_t end) : first_(first), count_(end > first ? end - first : 0) {}

  std::optional<std::uint32_t> take() {
    for (std::uint32_t i = 0; i < count_; ++i) {
      const std::uint32_t at = (next_ + i) % count_;
      if (at >= used_.size()) used_.resize(at + 1);
      if (used_[at]) continue;
      used_[at] = true;
      next_ = at + 1;
      return first_ + at;
    }
    return std::nullopt;
  }

  void give_back(std::uint32_t number) { used_[number - first_] = false; }

 private:
  std::uint32_t first_ = 0;
  std::uint32_t count_ = 0;
  std::vector<bool> used_;  // grows with the numbers given out
  std::uint32_t next_ = 0;
};

}  // namespace rnicsim::host
