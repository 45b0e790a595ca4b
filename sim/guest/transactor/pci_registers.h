// SPDX-License-Identifier: Apache-2.0
// Registers of PCI configuration space that a virtual machine's protocol has to know: PCI Local Bus 3.0, chapter 6; PCI
// Express Base 4.0, chapter 7.
#pragma once

#include <cstdint>

namespace rnicsim::sim::pci {

inline constexpr std::uint32_t kMostConfigBytes = 4096;
inline constexpr std::uint32_t kCommand = 0x04;
inline constexpr std::uint16_t kCommandMemory = 1 << 1;
inline constexpr std::uint32_t kBar0 = 0x10;
inline constexpr std::uint64_t kBarFlags = 0xf;
inline constexpr std::uint64_t kBarTypeMask = 0x6;
inline constexpr std::uint64_t kBarType64 = 0x4;

// A capability is a byte with its number, a byte with the offset of the next one, and its registers.
inline constexpr std::uint32_t kCapabilityPointer = 0x34;
inline constexpr std::uint32_t kCapabilityMask = 0xfc;
inline constexpr int kMostCapabilities = 48;
inline constexpr std::uint8_t kExpressCapability = 0x10;
inline constexpr std::uint32_t kDeviceControlOffset = 8;
inline constexpr std::uint16_t kFunctionLevelReset = 1 << 15;
inline constexpr std::uint8_t kMsixCapability = 0x11;
inline constexpr std::uint32_t kMsixControlOffset = 2;
inline constexpr std::uint16_t kMsixTableSize = 0x7ff;  // number of vectors minus 1
inline constexpr std::uint16_t kMsixEnable = 1 << 15;
inline constexpr std::uint32_t kMsixTableOffset = 4;
inline constexpr std::uint32_t kMsixBarMask = 7;

// On x86 a write to these addresses is an interrupt message.
inline constexpr std::uint64_t kMessageWindow = 0xfee00000;
inline constexpr std::uint64_t kMessageWindowBytes = 0x100000;

}  // namespace rnicsim::sim::pci
