// PCI configuration space of the function: identity, BAR0, the PCI Express and MSI-X capabilities. Little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/nic/personality/personality.h"

namespace rnicsim::nic {

class PciConfig {
 public:
  static constexpr std::uint16_t kSize = 0x1000;

  explicit PciConfig(const PciFunction& function) : function_(function) { reset(); }

  void reset();
  bool read(std::uint16_t offset, std::span<std::byte> out) const;         // false: outside
  bool write(std::uint16_t offset, std::span<const std::byte> in);
  bool take_function_reset();                                              // asked for since the last call

  bool memory_enabled() const { return (get16(kCommand) & kCommandMemory) != 0; }
  bool bus_master() const { return (get16(kCommand) & kCommandBusMaster) != 0; }
  bool msix_enabled() const { return (get16(msix_control()) & kMsixEnable) != 0; }
  bool msix_masked() const { return (get16(msix_control()) & kMsixMaskAll) != 0; }

 private:
  static constexpr std::uint16_t kCommand = 0x04;
  static constexpr std::uint16_t kCommandMemory = 1u << 1;
  static constexpr std::uint16_t kCommandBusMaster = 1u << 2;
  static constexpr std::uint16_t kMsixEnable = 1u << 15;
  static constexpr std::uint16_t kMsixMaskAll = 1u << 14;

  std::uint16_t msix_control() const { return static_cast<std::uint16_t>(function_.msix_capability + 2); }
  std::uint16_t device_control() const { return static_cast<std::uint16_t>(function_.pcie_capability + 8); }
  std::uint16_t get16(std::uint16_t offset) const {
    return static_cast<std::uint16_t>(value_[offset] | value_[offset + 1] << 8);
  }
  template <class T>
  void put(std::uint16_t offset, T value, T writable = 0);

  const PciFunction function_;
  std::array<std::uint8_t, kSize> value_;
  std::array<std::uint8_t, kSize> writable_;
  bool function_reset_ = false;
};

}  // namespace rnicsim::nic
