// What a simulated host has under /sys, /dev and /proc in the place of this machine's: where the simulator puts the
// files for its processes to find, and the network device that they tell of.
#pragma once

#include <cstdint>

namespace rnicsim::abi {

// In the folder kHostFilesPrefix + socket's name, a folder a host.
inline constexpr char kHostFilesPrefix[] = "/tmp/rnicsim-hosts.";

// The network device of a host's NIC; number 1 is `lo`.
inline constexpr char kNetDevice[] = "eth0";
inline constexpr std::uint32_t kNetDeviceIndex = 2;
inline constexpr std::uint32_t kNetDeviceMtu = 4200;  // holds a RoCE packet of 4096 bytes

}  // namespace rnicsim::abi
