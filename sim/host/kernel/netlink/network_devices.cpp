// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/netlink/network_devices.h"

#include <linux/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>

#include "model/abi/host_files.h"

namespace rnicsim::clock {
namespace {

constexpr unsigned kLoopbackFlags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING | IFF_LOWER_UP;
constexpr unsigned kEthernetFlags = IFF_UP | IFF_BROADCAST | IFF_RUNNING | IFF_MULTICAST | IFF_LOWER_UP;

}  // namespace

std::array<std::uint8_t, 6> NetDevice::mac() const {
  std::array<std::uint8_t, 6> bytes{};
  if (nic != nullptr) std::ranges::copy(nic->mac, bytes.begin());
  return bytes;
}

std::array<std::uint8_t, 4> NetDevice::ipv4() const {
  if (nic == nullptr) return {127, 0, 0, 1};
  return {nic->ipv4[0], nic->ipv4[1], nic->ipv4[2], nic->ipv4[3]};
}

std::array<std::uint8_t, 4> NetDevice::ipv4_broadcast() const {
  std::uint8_t mask[4];
  fill_mask(mask, sizeof mask, ipv4_prefix());
  std::array<std::uint8_t, 4> address = ipv4();
  for (std::size_t i = 0; i < address.size(); ++i) address[i] |= std::uint8_t(~mask[i]);
  return address;
}

NetDevices::NetDevices(const HostView& view) {
  all_[count_++] = {"lo", 1, kLoopbackFlags, 65536, ARPHRD_LOOPBACK, nullptr};
  for (std::uint32_t device = 0; device < abi::kMaxDevices; ++device) {
    const auto nic = std::ranges::find_if(
        view.all, [&](const auto& each) { return each.host == view.host && each.device == device; });
    if (nic == view.all.end()) break;
    NetDevice& added = all_[count_++];
    added = {"", abi::net_device_index(device), kEthernetFlags, int(abi::kNetDeviceMtu), ARPHRD_ETHER, &*nic};
    snprintf(added.name, sizeof added.name, "%s%u", abi::kNetDevicePrefix, device);
  }
}

const NetDevice* NetDevices::find(const char* name) const {
  const auto found = std::find_if(begin(), end(), [&](const auto& each) { return strcmp(each.name, name) == 0; });
  return found != end() ? found : nullptr;
}

const NetDevice* NetDevices::find(int index) const {
  const auto found = std::find_if(begin(), end(), [&](const auto& each) { return int(each.index) == index; });
  return found != end() ? found : nullptr;
}

void fill_mask(std::uint8_t* bytes, std::size_t size, unsigned prefix) {
  for (std::size_t i = 0; i < size; ++i, prefix -= std::min(prefix, 8u))
    bytes[i] = std::uint8_t(0xff00u >> std::min(prefix, 8u));
}

}  // namespace rnicsim::clock
