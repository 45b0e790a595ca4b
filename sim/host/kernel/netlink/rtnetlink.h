// SPDX-License-Identifier: Apache-2.0
// rtnetlink (NETLINK_ROUTE): a host's devices, addresses, routes, rules and neighbours, as the command `ip` asks for
// them. Changes need CAP_NET_ADMIN, which programs of a host do not have.
#pragma once

#include "sim/host/kernel/netlink/netlink_protocol.h"

namespace rnicsim::clock {

extern const NetlinkProtocol kRouteNetlink;

// An IP address or prefix of either family.
struct RouteAddress {
  std::uint8_t family = 0;  // AF_INET, AF_INET6
  std::uint8_t bytes[16] = {};
  std::size_t size() const;
  unsigned bits() const { return unsigned(size()) * 8; }

  static RouteAddress v4(const void* bytes);
  static RouteAddress v6(const void* bytes);
  static std::optional<RouteAddress> read(std::uint8_t family, NetlinkBytes bytes);
  // The address with all bits behind the prefix cleared.
  RouteAddress subnet(unsigned prefix) const;
  bool is_in(const RouteAddress& subnet, unsigned prefix) const;
};
void put_address(NetlinkDatagram& message, std::uint16_t type, const RouteAddress& address);

constexpr bool wants_family(const DumpFilter& filter, std::uint8_t family) {
  return filter.family == 0 || filter.family == family;
}

// For each kind of object a dump of all objects, and for some the answer about one (rtnetlink_*.cpp).
void dump_links(const HostView& view, Dump& dump);
int get_link(const HostView& view, const NetlinkCaller& caller, const NetlinkMessage& request, NetlinkDatagram& answer);
void dump_addresses(const HostView& view, Dump& dump);
int dump_routes(const HostView& view, Dump& dump);
int get_route(const HostView& view, const NetlinkCaller& caller, const NetlinkMessage& request,
              NetlinkDatagram& answer);
void dump_rules(Dump& dump);
void dump_neighbours(const HostView& view, Dump& dump);
int get_neighbour(const HostView& view, const NetlinkCaller& caller, const NetlinkMessage& request,
                  NetlinkDatagram& answer);

}  // namespace rnicsim::clock
