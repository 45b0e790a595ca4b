// SPDX-License-Identifier: Apache-2.0
// The device as software accesses it: registers by MMIO, and memory by DMA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rnicsim {

class DeviceAccess {
 public:
  // A posted write to BAR0. The caller charges the CPU time. `data` has 4 or 8 bytes, or whole 64-byte lines up to the
  // size of a BlueFlame buffer.
  virtual void mmio_write(std::uint32_t offset, std::span<const std::byte> data) = 0;
  virtual std::uint64_t mmio_read(std::uint32_t offset, std::uint32_t bytes) = 0;

  // Zeroed memory for DMA. The bus address equals the pointer, in this process's PASID. nullptr: no memory is left.
  virtual std::byte* allocate(std::size_t bytes, std::size_t alignment) = 0;
  virtual void release(std::byte* memory, std::size_t bytes) = 0;

 protected:
  ~DeviceAccess() = default;
};

}  // namespace rnicsim
