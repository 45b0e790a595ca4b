// SPDX-License-Identifier: Apache-2.0
// MSI-X for a virtual machine that owns the MSI-X table, as with VFIO: the virtual machine gives an eventfd for each
// vector, and this class writes the device's own table. Writes of the virtual machine to the table in BAR0 are stored
// and have no effect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/os/descriptor.h"

namespace rnicsim::sim {

class GuestPort;

class VectorTable {
 public:
  explicit VectorTable(GuestPort& port);

  std::uint32_t vectors() const { return static_cast<std::uint32_t>(eventfds_.size()); }

  // --- Vectors are below vectors(). A vector without an eventfd is masked: its interrupt stays pending.
  void assign(std::uint32_t vector, Descriptor eventfd);
  void release(std::uint32_t vector);
  void release_all();
  void trigger(std::uint32_t vector);
  // Writes the device's table again, after a reset of the device.
  void restore();
  // The device wrote an MSI-X message to this address: triggers the vector of the message.
  void interrupt(std::uint64_t address);

  // --- The table as the virtual machine sees it.
  bool covers(std::uint64_t bar_offset, std::size_t bytes) const;
  void read(std::uint64_t bar_offset, std::span<std::byte> bytes) const;
  void write(std::uint64_t bar_offset, std::span<const std::byte> bytes);

 private:
  bool any() const;
  void enable();
  void write_entries(std::uint32_t first, std::uint32_t count);
  void forget_writes();

  GuestPort& port_;
  const std::uint64_t table_;  // offset in BAR0
  std::vector<Descriptor> eventfds_;
  std::vector<std::byte> written_;
};

}  // namespace rnicsim::sim
