// SPDX-License-Identifier: Apache-2.0
// Zeroed private memory of this process, resident only where it is touched: may be larger than the machine's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rnicsim::host {

class SparseMemory {
 public:
  // Maps at the address `wanted`, or anywhere if `wanted` is 0. Throws std::system_error.
  explicit SparseMemory(std::size_t bytes, std::uintptr_t wanted = 0);
  ~SparseMemory();
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  // Zeroes the part. Whole pages take no memory until they are touched again.
  static void clear(std::span<std::byte> part);

 private:
  std::span<std::byte> bytes_;
};

}  // namespace rnicsim::host
