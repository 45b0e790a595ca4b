// The device as software reaches it: its registers, and memory that it reaches by DMA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rnicsim {

class DeviceAccess {
 public:
  // Posted; what the CPU pays is for the caller to charge. `data` is 4 or 8 bytes, or whole 64-byte lines up to a
  // BlueFlame buffer. Offsets are in BAR0.
  virtual void mmio_write(std::uint32_t offset, std::span<const std::byte> data) = 0;
  virtual std::uint64_t mmio_read(std::uint32_t offset, std::uint32_t bytes) = 0;

  // Zeroed memory that the device reaches by DMA at the address returned (bus address = pointer, in this process's
  // PASID); nullptr when exhausted.
  virtual std::byte* allocate(std::size_t bytes, std::size_t alignment) = 0;
  virtual void release(std::byte* memory, std::size_t bytes) = 0;

 protected:
  ~DeviceAccess() = default;
};

}  // namespace rnicsim
