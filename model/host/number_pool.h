// Numbers of objects. A number that was given back is the last to be given out again, so that a stale reference meets
// nobody; the order depends on the calls alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace rnicsim::host {

class NumberPool {
 public:
  NumberPool() = default;
  NumberPool(std::uint32_t first, std::uint32_t end) : first_(first), used_(end > first ? end - first : 0) {}

  std::optional<std::uint32_t> take() {
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const std::size_t at = (next_ + i) % used_.size();
      if (used_[at]) continue;
      used_[at] = true;
      next_ = at + 1;
      return first_ + static_cast<std::uint32_t>(at);
    }
    return std::nullopt;
  }

  void give_back(std::uint32_t number) { used_[number - first_] = false; }

 private:
  std::uint32_t first_ = 0;
  std::vector<bool> used_;
  std::size_t next_ = 0;
};

}  // namespace rnicsim::host
