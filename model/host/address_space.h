// The memory of one process as DMA finds it behind the IOMMU. Implementations: the kernel's own memory, a software
// thread of this process (cpu_port), an attached process (sim/attached).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rnicsim::host {

class AddressSpace {
 public:
  virtual ~AddressSpace() = default;
  // False when some byte is not there (the process unmapped it or died). A read then leaves `bytes` undefined.
  virtual bool read(std::uint64_t address, std::span<std::byte> bytes) = 0;
  virtual bool write(std::uint64_t address, std::span<const std::byte> bytes) = 0;
  // False once the process has ended: what the device still does to it is nobody's mistake.
  virtual bool exists() const { return true; }
};

}  // namespace rnicsim::host
