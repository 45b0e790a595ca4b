// SPDX-License-Identifier: Apache-2.0
#include "model/nic/pcie/pci_config.h"

#include <bit>
#include <utility>

namespace rnicsim::nic {
namespace {

// The type 0 header.
constexpr std::uint16_t kStatus = 0x06;
constexpr std::uint16_t kRevision = 0x08;
constexpr std::uint16_t kCacheLineSize = 0x0c;
constexpr std::uint16_t kBar0 = 0x10;
constexpr std::uint16_t kSubsystem = 0x2c;
constexpr std::uint16_t kCapabilityPointer = 0x34;
constexpr std::uint16_t kInterruptLine = 0x3c;
constexpr std::uint16_t kCommandWritable = 1u << 1 | 1u << 2 | 1u << 6 | 1u << 8 | 1u << 10;
constexpr std::uint16_t kStatusCapabilities = 1u << 4;
constexpr std::uint16_t kReceivedMasterAbort = 1u << 13;
constexpr std::uint32_t kBar64Prefetchable = 0xc;

constexpr std::uint8_t kCapabilityPower = 0x01;
constexpr std::uint8_t kCapabilityPcie = 0x10;
constexpr std::uint8_t kCapabilityMsix = 0x11;

// Power management 1.2: D0 and D3hot, no PME.
constexpr std::uint16_t kPowerVersion = 3;
constexpr std::uint16_t kNoSoftReset = 1u << 3;
constexpr std::uint8_t kPowerD3 = 3;

// PCI Express.
constexpr std::uint16_t kPcieEndpointV2 = 0x0002;
constexpr std::uint32_t kExtendedTags = 1u << 5;
constexpr std::uint32_t kRoleBasedErrors = 1u << 15;
constexpr std::uint32_t kResetsFunction = 1u << 28;
constexpr std::uint16_t kFunctionLevelReset = 1u << 15;
constexpr std::uint16_t kOrdersRelaxed = 1u << 4;
constexpr std::uint16_t kNoSnoop = 1u << 11;
constexpr std::uint16_t kReads512 = 2u << 12;
constexpr std::uint16_t kPayloadSize = 7u << 5;
constexpr std::uint16_t kDeviceControlWritable = 0x79ff;  // no phantom functions, no auxiliary power
constexpr std::uint16_t kErrorCorrectable = 1u << 0;
constexpr std::uint16_t kErrorNonFatal = 1u << 1;
constexpr std::uint16_t kErrorFatal = 1u << 2;
constexpr std::uint16_t kErrorUnsupported = 1u << 3;
constexpr std::uint16_t kDeviceErrors = 0xf;
constexpr std::uint32_t kAspmOptional = 1u << 22;
constexpr std::uint16_t kLinkControl = 0x03cb;  // ASPM, RCB, common clock, extended synch, clock and width
constexpr std::uint16_t kSlotClock = 1u << 12;
constexpr std::uint32_t kCompletionTimeouts = 0xf | 1u << 4;  // ranges A to D, and disabling the timeout
constexpr std::uint16_t kDeviceControl2Writable = 0x1f;

// Advanced error reporting, the first extended capability.
constexpr unsigned kErrors = 0x100;
constexpr std::uint32_t kErrorsHeader = 0x0001 | 2u << 16;
constexpr std::uint32_t kUncorrectable = 0x007ff030;  // the errors of PCIe 2.0
constexpr std::uint32_t kFatalByDefault = 0x00462030;
constexpr std::uint32_t kUnsupportedRequest = 1u << 20;
constexpr std::uint32_t kCorrectable = 0x0000f1c1;
constexpr std::uint32_t kAdvisoryNonFatal = 1u << 13;
constexpr std::uint32_t kCorrectableMasked = 0x0000e000;

constexpr std::uint32_t kSerialHeader = 0x0003 | 1u << 16;

}  // namespace

PciConfig::PciConfig(const PciFunction& function, const FunctionFacts& facts) : function_(function), facts_(facts) {
  put_header();
  put_power_management();
  put_pci_express();
  put_msix();
  put_error_reporting();
  put_serial_number();
  value_ = initial_;
  find_switches();
}

void PciConfig::reset() {
  for (std::size_t i = 0; i < kSize; ++i)
    value_[i] = static_cast<std::uint8_t>((value_[i] & kept_[i]) | (initial_[i] & ~kept_[i]));
  find_switches();
}

void PciConfig::find_switches() {
  const bool powered = (get16(power_control()) & kPowerState) == 0;
  memory_enabled_ = powered && (get16(kCommand) & kCommandMemory) != 0;
  bus_master_ = powered && (get16(kCommand) & kCommandBusMaster) != 0;
  msix_enabled_ = powered && (get16(msix_control()) & kMsixEnable) != 0;
  msix_masked_ = (get16(msix_control()) & kMsixMaskAll) != 0;
}

template <class T>
void PciConfig::put(unsigned offset, T value, const Bits<T>& bits) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    initial_[offset + i] = static_cast<std::uint8_t>(value >> (8 * i));
    writable_[offset + i] = static_cast<std::uint8_t>(bits.writable >> (8 * i));
    cleared_[offset + i] = static_cast<std::uint8_t>(bits.cleared >> (8 * i));
    kept_[offset + i] = static_cast<std::uint8_t>(bits.kept >> (8 * i));
  }
}

template <class T>
void PciConfig::set(unsigned offset, T bits) {
  for (std::size_t i = 0; i < sizeof(T); ++i) value_[offset + i] |= static_cast<std::uint8_t>(bits >> (8 * i));
}

void PciConfig::put_header() {
  put<std::uint16_t>(0, function_.vendor);
  put<std::uint16_t>(2, function_.device);
  put<std::uint16_t>(kCommand, 0, {.writable = kCommandWritable});
  put<std::uint16_t>(kStatus, kStatusCapabilities, {.cleared = 0xf900});
  put<std::uint32_t>(kRevision, function_.class_code << 8 | function_.revision);
  put<std::uint8_t>(kCacheLineSize, 0, {.writable = 0xff});
  put<std::uint32_t>(kBar0, kBar64Prefetchable, {.writable = ~(function_.bar_bytes - 1)});
  put<std::uint32_t>(kBar0 + 4, 0, {.writable = ~0u});
  put<std::uint16_t>(kSubsystem, function_.vendor);
  put<std::uint16_t>(kSubsystem + 2, function_.device);
  put<std::uint8_t>(kCapabilityPointer, static_cast<std::uint8_t>(function_.pcie_capability));
  put<std::uint8_t>(kInterruptLine, 0, {.writable = 0xff});
}

void PciConfig::put_pci_express() {
  const unsigned at = function_.pcie_capability;
  const std::uint32_t payload = std::countr_zero(facts_.max_payload) - 7;
  const std::uint32_t link = facts_.link_lanes << 4 | facts_.link_generation;
  put<std::uint8_t>(at, kCapabilityPcie);
  put<std::uint8_t>(at + 1, static_cast<std::uint8_t>(function_.msix_capability));
  put<std::uint16_t>(at + 2, kPcieEndpointV2);
  put<std::uint32_t>(at + 4, kResetsFunction | kRoleBasedErrors | kExtendedTags | payload);
  put<std::uint16_t>(device_control(), kReads512 | kNoSnoop | kOrdersRelaxed,
                     {.writable = kDeviceControlWritable, .kept = kPayloadSize});
  put<std::uint16_t>(at + 0x0a, 0, {.cleared = kDeviceErrors});
  put<std::uint32_t>(at + 0x0c, kAspmOptional | link);
  put<std::uint16_t>(at + 0x10, 0, {.writable = kLinkControl, .kept = kLinkControl});
  put<std::uint16_t>(at + 0x12, static_cast<std::uint16_t>(kSlotClock | link));
  put<std::uint32_t>(at + 0x24, kCompletionTimeouts);
  put<std::uint16_t>(at + 0x28, 0, {.writable = kDeviceControl2Writable});
  put<std::uint32_t>(at + 0x2c, (1u << (facts_.link_generation + 1)) - 2);  // all speeds up to the link's
  put<std::uint16_t>(at + 0x30, static_cast<std::uint16_t>(facts_.link_generation), {.writable = 0xf, .kept = 0xf});
}

void PciConfig::put_msix() {
  const unsigned at = function_.msix_capability;
  put<std::uint8_t>(at, kCapabilityMsix);
  put<std::uint8_t>(at + 1, static_cast<std::uint8_t>(function_.power_capability));
  put<std::uint16_t>(msix_control(), static_cast<std::uint16_t>(function_.msix_vectors - 1),
                     {.writable = kMsixEnable | kMsixMaskAll});
  put<std::uint32_t>(at + 4, function_.msix_table);
  put<std::uint32_t>(at + 8, function_.msix_pending);
}

void PciConfig::put_power_management() {
  const unsigned at = function_.power_capability;
  put<std::uint8_t>(at, kCapabilityPower);
  put<std::uint16_t>(at + 2, kPowerVersion);
  put<std::uint16_t>(power_control(), kNoSoftReset, {.writable = kPowerState});
}

void PciConfig::put_error_reporting() {
  const auto sticky = [](std::uint32_t writable, std::uint32_t cleared) {
    return Bits<std::uint32_t>{.writable = writable, .cleared = cleared, .kept = ~0u};
  };
  put<std::uint32_t>(kErrors, kErrorsHeader | std::uint32_t{function_.serial_capability} << 20);
  put<std::uint32_t>(kErrors + 0x04, 0, sticky(0, kUncorrectable));
  put<std::uint32_t>(kErrors + 0x08, 0, sticky(kUncorrectable, 0));
  put<std::uint32_t>(kErrors + 0x0c, kFatalByDefault, sticky(kUncorrectable, 0));
  put<std::uint32_t>(kErrors + 0x10, 0, sticky(0, kCorrectable));
  put<std::uint32_t>(kErrors + 0x14, kCorrectableMasked, sticky(kCorrectable, 0));
  put<std::uint32_t>(kErrors + 0x18, 0, sticky(0, 0));
}

void PciConfig::put_serial_number() {
  const unsigned at = function_.serial_capability;
  put<std::uint32_t>(at, kSerialHeader);
  put<std::uint32_t>(at + 4, static_cast<std::uint32_t>(facts_.serial_number));
  put<std::uint32_t>(at + 8, static_cast<std::uint32_t>(facts_.serial_number >> 32));
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
    auto bits = std::to_integer<std::uint8_t>(in[i]);
    if (at == reset_byte && (bits & kFunctionLevelReset >> 8) != 0) function_reset_ = true;
    // The function has no D1 and D2: writing them leaves the power state unchanged.
    if (at == power_control() && (bits & kPowerState) != 0 && (bits & kPowerState) != kPowerD3)
      bits = static_cast<std::uint8_t>((bits & ~kPowerState) | (value_[at] & kPowerState));
    value_[at] =
        static_cast<std::uint8_t>(((value_[at] & ~writable_[at]) | (bits & writable_[at])) & ~(bits & cleared_[at]));
  }
  find_switches();
  return true;
}

bool PciConfig::take_function_reset() { return std::exchange(function_reset_, false); }

// For a non-posted request the completion reports the error to the requester: here the error is then advisory (PCIe
// 4.0, 6.2.3.2.4.1).
void PciConfig::unsupported_request(bool posted) {
  const bool fatal = (get32(kErrors + 0x0c) & kUnsupportedRequest) != 0;
  const bool advisory = !posted && !fatal;
  set<std::uint16_t>(function_.pcie_capability + 0x0au,
                     static_cast<std::uint16_t>(kErrorUnsupported | (fatal      ? kErrorFatal
                                                                     : advisory ? kErrorCorrectable
                                                                                : kErrorNonFatal)));
  set<std::uint32_t>(kErrors + 0x04, kUnsupportedRequest);
  if (advisory) set<std::uint32_t>(kErrors + 0x10, kAdvisoryNonFatal);
}

void PciConfig::aborted_request() { set<std::uint16_t>(kStatus, kReceivedMasterAbort); }

}  // namespace rnicsim::nic
