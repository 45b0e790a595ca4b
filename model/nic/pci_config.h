// PCI configuration space of the function: identity, BAR0, the PCI Express and MSI-X capabilities. Little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/abi/device.h"

namespace rnicsim::nic {

class PciConfig {
 public:
  PciConfig() { reset(); }

  void reset();
  bool read(std::uint16_t offset, std::span<std::byte> out) const;         // false: outside
  bool write(std::uint16_t offset, std::span<const std::byte> in);
  bool take_function_reset();                                              // asked for since the last call

  bool memory_enabled() const { return (get16(abi::config::kCommand) & abi::config::kCommandMemory) != 0; }
  bool bus_master() const { return (get16(abi::config::kCommand) & abi::config::kCommandBusMaster) != 0; }
  bool msix_enabled() const { return (get16(abi::config::kMsixControl) & abi::config::kMsixEnable) != 0; }
  bool msix_masked() const { return (get16(abi::config::kMsixControl) & abi::config::kMsixMaskAll) != 0; }

 private:
  std::uint16_t get16(std::uint16_t offset) const {
    return static_cast<std::uint16_t>(value_[offset] | value_[offset + 1] << 8);
  }
  template <class T>
  void put(std::uint16_t offset, T value, T writable = 0);

  std::array<std::uint8_t, abi::config::kSize> value_;
  std::array<std::uint8_t, abi::config::kSize> writable_;
  bool function_reset_ = false;
};

}  // namespace rnicsim::nic
