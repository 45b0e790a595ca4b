// SPDX-License-Identifier: Apache-2.0
// Network devices (links) and their addresses.

#include "sim/host/kernel/netlink/rtnetlink.h"

#include <errno.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "model/abi/host_files.h"

namespace rnicsim::clock {
namespace {

constexpr std::uint32_t kForeverSeconds = ~0u;  // infinite lifetime of an address

// Statistics are left out: bytes on the simulated network are not counted.
void put_link(const NetDevice& device, NetlinkDatagram& message) {
  const bool is_nic = device.nic != nullptr;
  ifinfomsg header{};
  header.ifi_type = device.type;
  header.ifi_index = int(device.index);
  header.ifi_flags = device.flags;
  message.put_header(header);
  message.put_text(IFLA_IFNAME, device.name);
  message.put(IFLA_TXQLEN, kQueueLength);
  message.put(IFLA_OPERSTATE, std::uint8_t(is_nic ? IF_OPER_UP : IF_OPER_UNKNOWN));
  message.put(IFLA_LINKMODE, std::uint8_t{0});
  message.put(IFLA_MTU, std::uint32_t(device.mtu));
  message.put(IFLA_GROUP, std::uint32_t{0});
  message.put(IFLA_PROMISCUITY, std::uint32_t{0});
  message.put(IFLA_CARRIER, std::uint8_t{1});
  message.put_text(IFLA_QDISC, "noqueue");
  message.put(IFLA_ADDRESS, device.mac());
  std::array<std::uint8_t, 6> broadcast{};
  if (is_nic) broadcast.fill(0xff);
  message.put(IFLA_BROADCAST, broadcast);
  if (!is_nic) return;
  message.put(IFLA_PERM_ADDRESS, device.mac());
  message.put_text(IFLA_PARENT_DEV_NAME, abi::pci_slot_of(device.nic->device).data());
  message.put_text(IFLA_PARENT_DEV_BUS_NAME, "pci");
}

struct DeviceAddress {
  const NetDevice& device;
  RouteAddress address;
  unsigned prefix;
  unsigned char scope;  // RT_SCOPE_
};

void put_device_address(const DeviceAddress& entry, NetlinkDatagram& message) {
  const auto flags = std::uint32_t(IFA_F_PERMANENT);
  const bool is_v4 = entry.address.family == AF_INET;
  message.put_header(ifaddrmsg{entry.address.family, std::uint8_t(entry.prefix), std::uint8_t(flags), entry.scope,
                               entry.device.index});
  put_address(message, IFA_ADDRESS, entry.address);
  if (is_v4) {
    put_address(message, IFA_LOCAL, entry.address);
    if (entry.device.nic != nullptr) message.put(IFA_BROADCAST, entry.device.ipv4_broadcast());
    message.put_text(IFA_LABEL, entry.device.name);
  }
  message.put(IFA_FLAGS, flags);
  message.put(IFA_CACHEINFO, ifa_cacheinfo{kForeverSeconds, kForeverSeconds, 0, 0});  // created at boot
}

template <class Visit>
void visit_v4(const NetDevices& devices, Visit visit) {
  for (const NetDevice& device : devices) {
    const unsigned char scope = device.nic == nullptr ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
    if (device.ipv4_prefix() != 0)
      visit(DeviceAddress{device, RouteAddress::v4(device.ipv4().data()), device.ipv4_prefix(), scope});
  }
}

template <class Visit>
void visit_v6(const NetDevices& devices, Visit visit) {
  for (const NetDevice& device : devices) {
    const abi::NetworkInterface* nic = device.nic;
    if (nic == nullptr) {
      visit(DeviceAddress{device, RouteAddress::v6(&in6addr_loopback), 128, RT_SCOPE_HOST});
      continue;
    }
    if (nic->ipv6_prefix != 0)
      visit(DeviceAddress{device, RouteAddress::v6(nic->ipv6), nic->ipv6_prefix, RT_SCOPE_UNIVERSE});
    visit(DeviceAddress{device, RouteAddress::v6(abi::link_local_of(*nic).data()), 64, RT_SCOPE_LINK});
  }
}

}  // namespace

void dump_links(const HostView& view, Dump& dump) {
  for (const NetDevice& device : NetDevices(view))
    dump.item(RTM_NEWLINK, [&](NetlinkDatagram& message) { put_link(device, message); });
}

int get_link(const HostView& view, const NetlinkCaller& caller, const NetlinkMessage& request,
             NetlinkDatagram& answer) {
  const auto header = read_value<ifinfomsg>(request.payload());
  if (!header) return EINVAL;
  const NetDevices devices(view);
  const NetDevice* device = nullptr;
  if (header->ifi_index > 0) {
    device = devices.find(header->ifi_index);
  } else {
    const auto attributes = request.attributes_behind(sizeof *header);
    auto wanted = attributes.find(IFLA_IFNAME);
    if (!wanted) wanted = attributes.find(IFLA_ALT_IFNAME);
    if (!wanted) return EINVAL;
    char name[IFNAMSIZ] = {};
    if (!wanted->empty()) memcpy(name, wanted->data(), std::min(wanted->size(), sizeof name - 1));
    device = devices.find(name);
  }
  if (device == nullptr) return ENODEV;
  answer.begin(RTM_NEWLINK, 0, request.header.nlmsg_seq, caller.port);
  put_link(*device, answer);
  answer.end();
  return 0;
}

void dump_addresses(const HostView& view, Dump& dump) {
  const NetDevices devices(view);
  const auto give = [&](const DeviceAddress& entry) {
    if (dump.filter().index != 0 && dump.filter().index != int(entry.device.index)) return;
    dump.item(RTM_NEWADDR, [&](NetlinkDatagram& message) { put_device_address(entry, message); });
  };
  if (wants_family(dump.filter(), AF_INET)) visit_v4(devices, give);
  if (wants_family(dump.filter(), AF_INET6)) visit_v6(devices, give);
}

}  // namespace rnicsim::clock
