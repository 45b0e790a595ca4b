// What a simulated host has under /sys, /dev, /proc and /tmp in the place of this machine's: where the simulator puts
// the files for its processes to find, and the network device that they tell of.
#pragma once

#include <array>
#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim::abi {

// In the folder kHostFilesPrefix + socket's name, a folder a host: its /tmp and /var/tmp.
inline constexpr char kHostFilesPrefix[] = "/tmp/rnicsim-hosts.";
// The same in memory. There a host has its /dev/shm, and what the kernel shows of its devices; the latter lies with
// the other files where there is no room.
inline constexpr char kHostMemoryPrefix[] = "/dev/shm/rnicsim-hosts.";
inline constexpr char kSharedMemoryFolder[] = "/shm";
inline constexpr char kKernelFilesFolder[] = "/kernel";

// The RDMA devices of a host's NICs, "rnic0" ..., and their character devices, "uverbs0" ..., by the NIC's number.
inline constexpr char kDevicePrefix[] = "rnic";
inline constexpr char kUverbsPrefix[] = "uverbs";

// What a port can do, as ibv_port_attr::port_cap_flags has it: CM, GIDs of IP addresses.
inline constexpr std::uint32_t kPortCapabilities = 1u << 16 | 1u << 26;

// The network devices of a host's NICs: "eth0" ..., by the NIC's number; number 1 of all is `lo`.
inline constexpr char kNetDevicePrefix[] = "eth";
constexpr std::uint32_t net_device_index(std::uint32_t device) { return 2 + device; }
inline constexpr std::uint32_t kNetDeviceMtu = 4200;  // holds a RoCE packet of 4096 bytes

// Where a host's NICs are, in PCI domain 1, which no machine has: the paths must not be those of a device of its own.
constexpr std::array<char, 13> pci_slot_of(std::uint32_t device) {
  std::array<char, 13> text{'0', '0', '0', '1', ':', '0', '0', ':', '0', '0', '.', '0', 0};
  constexpr char kDigits[] = "0123456789abcdef";
  text[5] = kDigits[(1 + device) >> 4 & 0xf];
  text[6] = kDigits[(1 + device) & 0xf];
  return text;
}

// Its link-local IPv6 address: fe80::/64 and the EUI-64 of the MAC (RFC 4291, 2.5.6).
constexpr std::array<std::uint8_t, 16> link_local_of(const NetworkInterface& interface) {
  const auto& mac = interface.mac;
  return {0xfe, 0x80, 0, 0, 0, 0, 0, 0, std::uint8_t(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
}

// EUI-64 of its MAC address: the GUID of its NIC.
constexpr std::uint64_t node_guid_of(const NetworkInterface& interface) {
  std::uint64_t guid = 0;
  for (std::size_t i = 8; i < 16; ++i) guid = guid << 8 | link_local_of(interface)[i];
  return guid;
}

}  // namespace rnicsim::abi
