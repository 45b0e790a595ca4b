// Ranges of indices: the first gap that is large enough is given, and gaps that touch are one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace rnicsim::host {

class RangePool {
 public:
  RangePool() = default;
  explicit RangePool(std::uint32_t size);

  // The first index of so many; nullopt: there is no such gap. None are found anywhere.
  std::optional<std::uint32_t> take(std::uint32_t count) { return take(count, 1); }
  // One that is a multiple of `alignment`.
  std::optional<std::uint32_t> take(std::uint32_t count, std::uint64_t alignment);
  // As it was taken.
  void give_back(std::uint32_t first, std::uint32_t count);

 private:
  std::map<std::uint32_t, std::uint32_t> gaps_;  // count by first
};

}  // namespace rnicsim::host
