// SPDX-License-Identifier: Apache-2.0
// PCI configuration space of the function, little-endian: identity, BAR0, and an endpoint's capabilities: PCI Express,
// MSI-X, power management, advanced error reporting, device serial number (PCIe Base Specification 4.0, 7.5 to 7.8).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/nic/personality/personality.h"

namespace rnicsim::nic {

// Properties of the device and its link for configuration space.
struct FunctionFacts {
  std::uint32_t link_generation = 3;
  std::uint32_t link_lanes = 16;
  std::uint64_t max_payload = 256;  // bytes of a TLP: 128 to 4096, a power of two
  std::uint64_t serial_number = 0;  // an EUI-64
};

class PciConfig {
 public:
  static constexpr std::uint16_t kSize = 0x1000;

  explicit PciConfig(const PciFunction& function, const FunctionFacts& facts = {});

  // Function-level reset: sticky registers and link registers keep their values (6.6.2).
  void reset();
  bool read(std::uint16_t offset, std::span<std::byte> out) const;  // false: outside
  bool write(std::uint16_t offset, std::span<const std::byte> in);
  bool take_function_reset();  // true: requested since the last call

  bool memory_enabled() const { return memory_enabled_; }
  bool bus_master() const { return bus_master_; }
  bool msix_enabled() const { return msix_enabled_; }
  bool msix_masked() const { return msix_masked_; }

  // --- Errors set bits in status registers. The device sends no error messages (ERR_COR, ERR_NONFATAL, ERR_FATAL).
  void unsupported_request(bool posted);  // the device refused a request to BAR0
  void aborted_request();                 // the host aborted a DMA request

 private:
  static constexpr std::uint16_t kCommand = 0x04;
  static constexpr std::uint16_t kCommandMemory = 1u << 1;
  static constexpr std::uint16_t kCommandBusMaster = 1u << 2;
  static constexpr std::uint16_t kMsixEnable = 1u << 15;
  static constexpr std::uint16_t kMsixMaskAll = 1u << 14;
  static constexpr std::uint16_t kPowerState = 3;

  // Bits of a register: `writable`: a write changes them; `cleared`: writing 1 clears them; `kept`: a function-level
  // reset keeps them.
  template <class T>
  struct Bits {
    T writable = 0;
    T cleared = 0;
    T kept = 0;
  };
  template <class T>
  void put(unsigned offset, T value, const Bits<T>& bits = {});
  template <class T>
  void set(unsigned offset, T bits);

  void put_header();
  void put_power_management();
  void put_pci_express();
  void put_msix();
  void put_error_reporting();
  void put_serial_number();

  std::uint16_t msix_control() const { return static_cast<std::uint16_t>(function_.msix_capability + 2); }
  std::uint16_t device_control() const { return static_cast<std::uint16_t>(function_.pcie_capability + 8); }
  std::uint16_t power_control() const { return static_cast<std::uint16_t>(function_.power_capability + 4); }
  void find_switches();
  std::uint16_t get16(std::uint16_t offset) const {
    return static_cast<std::uint16_t>(value_[offset] | value_[offset + 1] << 8);
  }
  std::uint32_t get32(std::uint16_t offset) const {
    return get16(offset) | std::uint32_t{get16(static_cast<std::uint16_t>(offset + 2))} << 16;
  }

  const PciFunction function_;
  const FunctionFacts facts_;
  std::array<std::uint8_t, kSize> value_{};
  std::array<std::uint8_t, kSize> initial_{};
  std::array<std::uint8_t, kSize> writable_{};
  std::array<std::uint8_t, kSize> cleared_{};
  std::array<std::uint8_t, kSize> kept_{};
  // Bits of the registers above that every access needs.
  bool memory_enabled_ = false;
  bool bus_master_ = false;
  bool msix_enabled_ = false;
  bool msix_masked_ = false;
  bool function_reset_ = false;
};

}  // namespace rnicsim::nic
