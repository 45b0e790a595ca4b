#include "model/nic/pcie/pci_config.h"

#include <utility>

namespace rnicsim::nic {
namespace {

constexpr std::uint16_t kStatus = 0x06;
constexpr std::uint16_t kBar0 = 0x10;
constexpr std::uint16_t kCapabilityPointer = 0x34;
constexpr std::uint16_t kFunctionLevelReset = 1u << 15;
constexpr std::uint16_t kRevision = 0x08;
constexpr std::uint16_t kSubsystem = 0x2c;
constexpr std::uint16_t kStatusCapabilities = 1u << 4;
constexpr std::uint8_t kCapabilityPcie = 0x10;
constexpr std::uint8_t kCapabilityMsix = 0x11;
constexpr std::uint32_t kBar64Prefetchable = 0xc;
constexpr std::uint16_t kPcieEndpointV2 = 0x0002;
constexpr std::uint32_t kDeviceCapabilities = 1u << 28 | 1u;  // function-level reset; 256-byte payloads
constexpr std::uint16_t kDeviceControlWritable = 0x7fff;
constexpr std::uint32_t kLinkGen3X16 = 16u << 4 | 3u;

}  // namespace

template <class T>
void PciConfig::put(std::uint16_t offset, T value, T writable) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value_[offset + i] = static_cast<std::uint8_t>(value >> (8 * i));
    writable_[offset + i] = static_cast<std::uint8_t>(writable >> (8 * i));
  }
}

void PciConfig::reset() {
  const auto pcie = function_.pcie_capability;
  const auto msix = function_.msix_capability;
  const auto at = [](std::uint16_t capability, unsigned offset) {
    return static_cast<std::uint16_t>(capability + offset);
  };
  value_.fill(0);
  writable_.fill(0);
  put<std::uint16_t>(0, function_.vendor);
  put<std::uint16_t>(2, function_.device);
  put<std::uint16_t>(kCommand, 0, kCommandMemory | kCommandBusMaster | 1u << 10);
  put<std::uint16_t>(kStatus, kStatusCapabilities);
  put<std::uint32_t>(kRevision, function_.class_code << 8 | function_.revision);
  put<std::uint32_t>(kBar0, kBar64Prefetchable, ~(function_.bar_bytes - 1));
  put<std::uint32_t>(kBar0 + 4, 0, ~0u);
  put<std::uint16_t>(kSubsystem, function_.vendor);
  put<std::uint16_t>(kSubsystem + 2, function_.device);
  put<std::uint8_t>(kCapabilityPointer, static_cast<std::uint8_t>(pcie));
  put<std::uint8_t>(pcie, kCapabilityPcie);
  put<std::uint8_t>(at(pcie, 1), static_cast<std::uint8_t>(msix));
  put<std::uint16_t>(at(pcie, 2), kPcieEndpointV2);
  put<std::uint32_t>(at(pcie, 4), kDeviceCapabilities);
  put<std::uint16_t>(device_control(), 0, kDeviceControlWritable);
  put<std::uint32_t>(at(pcie, 0x0c), kLinkGen3X16);
  put<std::uint16_t>(at(pcie, 0x12), kLinkGen3X16);
  put<std::uint8_t>(msix, kCapabilityMsix);
  put<std::uint16_t>(msix_control(), static_cast<std::uint16_t>(function_.msix_vectors - 1),
                     kMsixEnable | kMsixMaskAll);
  put<std::uint32_t>(at(msix, 4), function_.msix_table);
  put<std::uint32_t>(at(msix, 8), function_.msix_pending);
}

bool PciConfig::read(std::uint16_t offset, std::span<std::byte> out) const {
  if (offset + out.size() > value_.size()) return false;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::byte(value_[offset + i]);
  return true;
}

bool PciConfig::write(std::uint16_t offset, std::span<const std::byte> in) {
  if (offset + in.size() > value_.size()) return false;
  const std::size_t reset_byte = device_control() + 1u;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto at = offset + i;
    const auto bits = std::to_integer<std::uint8_t>(in[i]);
    if (at == reset_byte && (bits & kFunctionLevelReset >> 8) != 0) function_reset_ = true;
    value_[at] = static_cast<std::uint8_t>((value_[at] & ~writable_[at]) | (bits & writable_[at]));
  }
  return true;
}

bool PciConfig::take_function_reset() { return std::exchange(function_reset_, false); }

}  // namespace rnicsim::nic
