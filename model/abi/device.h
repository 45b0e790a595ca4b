// SPDX-License-Identifier: Apache-2.0
// PCI identity, BAR0 map and registers. Chapter 1 of docs/device.md is checked against this file.
// PCI configuration space and the MSI-X table are little-endian, as PCI says; all else in BAR0 is big-endian.
#pragma once

#include <cstdint>

namespace rnicsim::abi {

// Version of the contract: a driver refuses another major version.
inline constexpr std::uint16_t kAbiMajor = 2;
inline constexpr std::uint16_t kAbiMinor = 1;

// --- PCI identity (not assigned by the PCI-SIG: the device never sits on a real bus).
inline constexpr std::uint16_t kPciVendorId = 0xd00d;
inline constexpr std::uint16_t kPciDeviceId = 0x0001;
inline constexpr std::uint32_t kPciClassCode = 0x020700;  // network controller, InfiniBand
inline constexpr std::uint8_t kPciRevision = 1;

// --- Configuration space: offsets of the capabilities and of the bits the model acts on.
namespace config {
inline constexpr std::uint16_t kCommand = 0x04;  // bit 1 memory space, bit 2 bus master
inline constexpr std::uint16_t kBar0 = 0x10;     // 64-bit, prefetchable
inline constexpr std::uint16_t kCapabilityPointer = 0x34;
inline constexpr std::uint16_t kPcieCapability = 0x40;
inline constexpr std::uint16_t kDeviceControl = 0x48;  // bit 15: initiate function-level reset
inline constexpr std::uint16_t kMsixCapability = 0x80;
inline constexpr std::uint16_t kMsixControl = 0x82;  // bit 15 enable, bit 14 mask all
inline constexpr std::uint16_t kPowerCapability = 0x90;
inline constexpr std::uint16_t kPowerControl = 0x94;     // bits 1:0: 0 is D0, 3 is D3hot
inline constexpr std::uint16_t kErrorReporting = 0x100;  // the extended capabilities begin
inline constexpr std::uint16_t kSerialNumber = 0x150;    // EUI-64 of the port's MAC address
inline constexpr std::uint16_t kSize = 0x1000;
inline constexpr std::uint16_t kCommandMemory = 1u << 1;
inline constexpr std::uint16_t kCommandBusMaster = 1u << 2;
inline constexpr std::uint16_t kFunctionLevelReset = 1u << 15;
inline constexpr std::uint16_t kMsixEnable = 1u << 15;
inline constexpr std::uint16_t kMsixMaskAll = 1u << 14;
}  // namespace config

// --- BAR0.
inline constexpr std::uint32_t kBarSize = 8u << 20;
inline constexpr std::uint32_t kRegisterPage = 0x000000;
inline constexpr std::uint32_t kMsixTable = 0x010000;  // 16 bytes for each vector, little-endian, PCI layout
inline constexpr std::uint32_t kMsixPba = 0x018000;    // one bit for each vector, little-endian
inline constexpr std::uint32_t kUarBase = 0x100000;    // UAR pages, 4 KiB each
inline constexpr std::uint32_t kUarPageSize = 4096;
inline constexpr std::uint32_t kUarPages = 1024;  // page 0 belongs to the kernel's agent
inline constexpr std::uint32_t kMsixVectors = 64;
inline constexpr std::uint32_t kDeviceMemoryBase = 0x600000;  // device memory, up to its size
inline constexpr std::uint32_t kMostDeviceMemory = 2u << 20;

// --- The register page. Width in bits, RO read only.
namespace reg {
inline constexpr std::uint32_t kMagic = 0x000;              // 32 RO "RNIC"
inline constexpr std::uint32_t kAbiVersion = 0x004;         // 32 RO major << 16 | minor
inline constexpr std::uint32_t kFeatures = 0x008;           // 64 RO Feature bits
inline constexpr std::uint32_t kFirmwareVersion = 0x010;    // 64 RO major << 32 | minor << 16 | patch
inline constexpr std::uint32_t kUarInfo = 0x018;            // 32 RO number of UAR pages
inline constexpr std::uint32_t kBlueFlameSize = 0x01c;      // 32 RO bytes a BlueFlame buffer
inline constexpr std::uint32_t kCommandLogEntries = 0x020;  // 32 RO log2 of the number of entries of the command queue
inline constexpr std::uint32_t kStatus = 0x024;             // 32 RO DeviceStatus
inline constexpr std::uint32_t kHealthSyndrome = 0x028;     // 32 RO reason of kFatal: HealthSyndrome
inline constexpr std::uint32_t kCoreClockKhz = 0x02c;       // 32 RO frequency of kClock
inline constexpr std::uint32_t kHealthCounter = 0x030;  // 32 RO heartbeat: incremented each millisecond, unless kFatal
inline constexpr std::uint32_t kCommandQueueBase = 0x080;  // 64 RW bus address of the command queue, 4 KiB aligned
inline constexpr std::uint32_t kCommandDoorbell = 0x088;   // 32 WO one bit for each entry to execute
inline constexpr std::uint32_t kClock = 0x0a0;             // 64 RO free-running clock, kCoreClockKhz
}  // namespace reg

inline constexpr std::uint32_t kMagicValue = 0x524e4943;

enum class DeviceStatus : std::uint32_t { initializing = 0, ready = 1, fatal = 2 };
enum class HealthSyndrome : std::uint32_t {
  none = 0,
  injected = 1,              // a fault rule of the simulation
  icm_access = 2,            // host memory refused the write of a context that is not a queue pair's
  event_queue_access = 3,    // host memory refused an event queue entry
  command_queue_access = 4,  // host memory refused the completion of a command
};

namespace feature {
inline constexpr std::uint64_t kBlueFlame = 1ull << 0;
inline constexpr std::uint64_t kRc = 1ull << 1;
inline constexpr std::uint64_t kInvalidate = 1ull << 2;  // send_with_inv and local_inv, and their packets
inline constexpr std::uint64_t kUc = 1ull << 3;
inline constexpr std::uint64_t kUd = 1ull << 4;
inline constexpr std::uint64_t kSrq = 1ull << 5;
inline constexpr std::uint64_t kMulticast = 1ull << 6;
inline constexpr std::uint64_t kWindows = 1ull << 7;  // memory windows of types 1 and 2B
inline constexpr std::uint64_t kRaw = 1ull << 8;      // raw packets: queue pairs, flows, receive-side scaling
inline constexpr std::uint64_t kXrc = 1ull << 9;
inline constexpr std::uint64_t kDeviceMemory = 1ull << 10;
inline constexpr std::uint64_t kOnDemand = 1ull << 11;  // regions whose pages the device requests from the host
inline constexpr std::uint64_t kAtomicWrite = 1ull << 12;
inline constexpr std::uint64_t kPacing = 1ull << 13;        // Qpc::rate_limit
inline constexpr std::uint64_t kSourceQpn = 1ull << 14;     // Qpc::source_qpn
inline constexpr std::uint64_t kWritePadding = 1ull << 15;  // Qpc::kPadWrites
inline constexpr std::uint64_t kRelaxedOrdering = 1ull << 16;
inline constexpr std::uint64_t kFastRegister = 1ull << 17;  // MptKind::fast_register and its work request
}  // namespace feature

// --- A UAR page. A process maps only its own pages; the device refuses a doorbell whose QP or CQ names another page.
namespace uar {
inline constexpr std::uint32_t kSendDoorbell = 0x000;  // SendDoorbell, 8 bytes
inline constexpr std::uint32_t kCqArm = 0x010;         // CqArm, 8 bytes
inline constexpr std::uint32_t kEqDoorbell = 0x020;    // EqDoorbell, 8 bytes; page 0 only
inline constexpr std::uint32_t kBlueFlame0 = 0x800;    // a whole send WQE, at most kBlueFlameBytes
inline constexpr std::uint32_t kBlueFlame1 = 0x900;    // used in turn with kBlueFlame0
inline constexpr std::uint32_t kBlueFlameBytes = 256;
}  // namespace uar

// --- A write to a bus address in the MSI window is an interrupt, as on x86: address kMsiWindow + 16 * vector, data =
// vector.
inline constexpr std::uint64_t kMsiWindow = 0xfee00000;
inline constexpr std::uint64_t kMsiWindowSize = 0x100000;

}  // namespace rnicsim::abi
