// Zeroed memory of this process alone, resident as far as it is touched: it may be more than the machine has.
#pragma once

#include <cstddef>
#include <span>

namespace rnicsim::host {

class SparseMemory {
 public:
  explicit SparseMemory(std::size_t bytes);  // throws std::system_error
  ~SparseMemory();
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  // Zeros again. Whole pages take no memory until they are touched.
  static void clear(std::span<std::byte> part);

 private:
  std::span<std::byte> bytes_;
};

}  // namespace rnicsim::host
