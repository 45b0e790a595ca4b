// Zeroed memory of this process alone, resident as far as it is touched: it may be more than the machine has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rnicsim::host {

class SparseMemory {
 public:
  // At an address of the caller's choice, or where there is room. Throws std::system_error.
  explicit SparseMemory(std::size_t bytes, std::uintptr_t wanted = 0);
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
