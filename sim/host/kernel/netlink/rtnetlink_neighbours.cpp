// SPDX-License-Identifier: Apache-2.0
// Neighbours. The simulated network knows the interface of each address without asking: all neighbours are permanent.

#include <errno.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>

#include "sim/host/kernel/netlink/rtnetlink.h"

namespace rnicsim::clock {
namespace {

struct Neighbour {
  const NetDevice& device;
  RouteAddress address;
  const abi::NetworkInterface& interface;
};

void put_neighbour(const Neighbour& neighbour, NetlinkDatagram& message) {
  ndmsg header{};
  header.ndm_family = neighbour.address.family;
  header.ndm_ifindex = int(neighbour.device.index);
  header.ndm_state = NUD_PERMANENT;
  header.ndm_type = RTN_UNICAST;
  message.put_header(header);
  put_address(message, NDA_DST, neighbour.address);
  message.put(NDA_LLADDR, neighbour.interface.mac);
}

// The device in whose subnet the address lies, else the first NIC.
const NetDevice& device_to(const NetDevices& devices, const RouteAddress& address) {
  const auto found = std::find_if(devices.begin() + 1, devices.end(), [&](const NetDevice& device) {
    const abi::NetworkInterface& own = *device.nic;
    const bool is_v4 = address.family == AF_INET;
    const unsigned prefix = is_v4 ? own.ipv4_prefix : own.ipv6_prefix;
    return prefix != 0 && address.is_in(is_v4 ? RouteAddress::v4(own.ipv4) : RouteAddress::v6(own.ipv6), prefix);
  });
  return found != devices.end() ? *found : devices.begin()[1];
}

template <class Visit>
void visit_neighbours(const HostView& view, const NetDevices& devices, std::uint8_t family, Visit visit) {
  if (devices.size() < 2) return;
  for (const abi::NetworkInterface& each : view.all) {
    const bool is_v4 = family == AF_INET;
    if (each.host == view.host || (is_v4 ? each.ipv4_prefix : each.ipv6_prefix) == 0) continue;
    const RouteAddress address = is_v4 ? RouteAddress::v4(each.ipv4) : RouteAddress::v6(each.ipv6);
    visit(Neighbour{device_to(devices, address), address, each});
  }
}

}  // namespace

void dump_neighbours(const HostView& view, Dump& dump) {
  const NetDevices devices(view);
  const auto give = [&](const Neighbour& neighbour) {
    if (dump.filter().index != 0 && dump.filter().index != int(neighbour.device.index)) return;
    dump.item(RTM_NEWNEIGH, [&](NetlinkDatagram& message) { put_neighbour(neighbour, message); });
  };
  for (const std::uint8_t family : {AF_INET, AF_INET6})
    if (wants_family(dump.filter(), family)) visit_neighbours(view, devices, family, give);
}

int get_neighbour(const HostView& view, const NetlinkCaller& caller, const NetlinkMessage& request,
                  NetlinkDatagram& answer) {
  const auto header = read_value<ndmsg>(request.payload());
  if (!header) return EINVAL;
  const auto given = request.attributes_behind(sizeof *header).find(NDA_DST);
  const auto wanted = given ? RouteAddress::read(header->ndm_family, *given) : std::nullopt;
  if (!wanted) return EINVAL;
  const NetDevices devices(view);
  if (devices.find(header->ndm_ifindex) == nullptr) return header->ndm_ifindex == 0 ? EINVAL : ENODEV;
  visit_neighbours(view, devices, wanted->family, [&](const Neighbour& neighbour) {
    if (!answer.empty() || int(neighbour.device.index) != header->ndm_ifindex ||
        !neighbour.address.is_in(*wanted, wanted->bits()))
      return;
    answer.begin(RTM_NEWNEIGH, 0, request.header.nlmsg_seq, caller.port);
    put_neighbour(neighbour, answer);
    answer.end();
  });
  return answer.empty() ? ENOENT : 0;
}

}  // namespace rnicsim::clock
