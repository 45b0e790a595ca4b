// MSI-X of a guest whose machine owns the table, as VFIO's do: it gives an eventfd a vector, and the device's own table
// is our affair. What the machine writes to the table's place in BAR0 is kept, and means nothing.
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

  // --- Vectors are below kVectors. One without an eventfd is masked: its interrupts pend.
  void assign(std::uint32_t vector, Descriptor eventfd);
  void release(std::uint32_t vector);
  void release_all();
  void trigger(std::uint32_t vector);
  // The device was reset: its table is as we want it again.
  void restore();
  // The device interrupts.
  void interrupt(std::uint64_t address);

  // --- What the machine takes for the table.
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
