// MSI-X for a virtual machine that owns the MSI-X table, as with VFIO: the virtual machine gives an eventfd for each
// vector, and this class writes the device's own table. Writes of the virtual machine to the table in BAR0 are stored
// and have no effect.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/abi/device.h"
#include "sim/descriptor.h"

namespace rnicsim::sim {

class GuestPort;

class VectorTable {
 public:
  static constexpr std::uint32_t kVectors = abi::kMsixVectors;
  static constexpr std::uint32_t kBytes = 16 * kVectors;

  explicit VectorTable(GuestPort& port) : port_(port) { forget_writes(); }

  // --- Vectors are below kVectors. A vector without an eventfd is masked: its interrupt pends.
  void assign(std::uint32_t vector, Descriptor eventfd);
  void release(std::uint32_t vector);
  void release_all();
  void trigger(std::uint32_t vector);
  // Writes the device's table again, after a reset of the device.
  void restore();
  // The device sent a message to this address.
  void interrupt(std::uint64_t address);

  // --- The table as the virtual machine sees it.
  static bool covers(std::uint64_t bar_offset, std::size_t bytes) {
    return bar_offset >= abi::kMsixTable && bytes <= kBytes && bar_offset - abi::kMsixTable <= kBytes - bytes;
  }
  void read(std::uint64_t bar_offset, std::span<std::byte> bytes) const;
  void write(std::uint64_t bar_offset, std::span<const std::byte> bytes);

 private:
  bool any() const;
  void enable();
  void write_entries(std::uint32_t first, std::uint32_t count);
  void forget_writes();

  GuestPort& port_;
  std::array<Descriptor, kVectors> eventfds_;
  std::array<std::byte, kBytes> written_{};
};

}  // namespace rnicsim::sim
