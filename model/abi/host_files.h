// SPDX-License-Identifier: Apache-2.0
// Files of a simulated host under /sys, /dev, /proc and /tmp that replace this machine's: paths at which the simulator
// stores them for its processes, and the network device that they describe.
#pragma once

#include <array>
#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim::abi {

// Prefix of the folder that is named after the socket. The folder has a folder for each host, with its /tmp and
// /var/tmp.
inline constexpr char kHostFilesPrefix[] = "/tmp/rnicsim-hosts.";
// The same in memory, with each host's /dev/shm and the kernel's files about the host's devices. If there is no room,
// the kernel's files are stored with the other files.
inline constexpr char kHostMemoryPrefix[] = "/dev/shm/rnicsim-hosts.";
inline constexpr char kSharedMemoryFolder[] = "/shm";
inline constexpr char kKernelFilesFolder[] = "/kernel";

// Names of a host's RDMA devices, "rnic0" ..., and of their character devices, "uverbs0" ..., with the NIC's number.
inline constexpr char kDevicePrefix[] = "rnic";
inline constexpr char kUverbsPrefix[] = "uverbs";

// Port capabilities, as in ibv_port_attr::port_cap_flags: CM, IP-based GIDs.
inline constexpr std::uint32_t kPortCapabilities = 1u << 16 | 1u << 26;

// Names of a host's network devices: "eth0" ..., with the NIC's number. Interface index 1 is `lo`.
inline constexpr char kNetDevicePrefix[] = "eth";
constexpr std::uint32_t net_device_index(std::uint32_t device) { return 2 + device; }
inline constexpr std::uint32_t kNetDeviceMtu = 4200;  // fits a RoCE packet of 4096 bytes

// PCI address of a host's NIC: in domain 1, which no real machine uses, so the paths do not collide with real devices.
constexpr std::array<char, 13> pci_slot_of(std::uint32_t device) {
  std::array<char, 13> text{'0', '0', '0', '1', ':', '0', '0', ':', '0', '0', '.', '0', 0};
  constexpr char kDigits[] = "0123456789abcdef";
  text[5] = kDigits[(1 + device) >> 4 & 0xf];
  text[6] = kDigits[(1 + device) & 0xf];
  return text;
}

// Link-local IPv6 address: fe80::/64 and the EUI-64 of the MAC address (RFC 4291, 2.5.6).
constexpr std::array<std::uint8_t, 16> link_local_of(const NetworkInterface& interface) {
  const auto& mac = interface.mac;
  return {0xfe, 0x80, 0, 0, 0, 0, 0, 0, std::uint8_t(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
}

// EUI-64 of the MAC address: node GUID of the NIC.
constexpr std::uint64_t node_guid_of(const NetworkInterface& interface) {
  std::uint64_t guid = 0;
  for (std::size_t i = 8; i < 16; ++i) guid = guid << 8 | link_local_of(interface)[i];
  return guid;
}

}  // namespace rnicsim::abi
