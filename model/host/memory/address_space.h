// SPDX-License-Identifier: Apache-2.0
// The memory of one process, which DMA reaches through the IOMMU. Implementations: the kernel's own memory, a software
// thread of the simulator's process (cpu_port), an attached process (sim/attached).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rnicsim::host {

// Identity of a page that may be mapped more than once, and by more than one process: equal values mean the same page.
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
  // False: some byte is not mapped (the process unmapped it or died). A failed read leaves `bytes` undefined.
  virtual bool read(std::uint64_t address, std::span<std::byte> bytes) = 0;
  virtual bool write(std::uint64_t address, std::span<const std::byte> bytes) = 0;
  // Prepares a range for pinning: its pages stay those that are mapped now. 0 or errno. EFAULT: part of the range is
  // not mapped, not readable, or not writable although `writable`; nothing has changed.
  virtual int admit(std::uint64_t address, std::uint64_t bytes, bool writable) = 0;
  // Identity of the page at a pinned address; nullopt: private memory of this address space.
  virtual std::optional<SharedPage> shared_page(std::uint64_t address) const = 0;
  // Pinning a page on demand: returns the bus address of a range of the process's own addresses. left_bus() ends the
  // use of that bus address.
  virtual std::uint64_t place_on_bus(std::uint64_t address, std::uint64_t) { return address; }
  virtual void left_bus(std::uint64_t, std::uint64_t) {}
  // False once the process has ended: DMA to its memory is then not an error of a program.
  virtual bool exists() const { return true; }
};

}  // namespace rnicsim::host
