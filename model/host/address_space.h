// The memory of one process as DMA finds it behind the IOMMU. Implementations: the kernel's own memory, a software
// thread of this process (cpu_port), an attached process (sim/attached).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rnicsim::host {

// Memory that may be mapped more than once, and by more than one process: pages are the same when these are equal.
struct SharedPage {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t index = 0;
  auto operator<=>(const SharedPage&) const = default;
};

class AddressSpace {
 public:
  static constexpr std::uint64_t kPage = 4096;

  virtual ~AddressSpace() = default;
  // False when some byte is not there (the process unmapped it or died). A read then leaves `bytes` undefined.
  virtual bool read(std::uint64_t address, std::span<std::byte> bytes) = 0;
  virtual bool write(std::uint64_t address, std::span<const std::byte> bytes) = 0;
  // It is about to be pinned: 0, and from now on its pages are what lies there now. EFAULT when some of it is not
  // there, may not be read, or not be written if `writable`; then nothing has changed.
  virtual int admit(std::uint64_t address, std::uint64_t bytes, bool writable) = 0;
  // What lies at a pinned address; nullopt: memory of this space alone.
  virtual std::optional<SharedPage> shared_page(std::uint64_t address) const = 0;
  // Where on the bus the device is to find that memory, of the process's own addresses, when it is pinned; and that it
  // is pinned there no more.
  virtual std::uint64_t place_on_bus(std::uint64_t address, std::uint64_t) { return address; }
  virtual void left_bus(std::uint64_t, std::uint64_t) {}
  // False once the process has ended: what the device still does to it is nobody's mistake.
  virtual bool exists() const { return true; }
};

}  // namespace rnicsim::host
