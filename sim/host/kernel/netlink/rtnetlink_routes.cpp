// SPDX-License-Identifier: Apache-2.0
// Routes: those that Linux makes for a host's addresses, and one to each subnet of the simulated network in which no
// device has an address, because such a subnet is reached without a router. No route leads outside.

#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "model/abi/host_files.h"
#include "sim/host/kernel/netlink/rtnetlink.h"

namespace rnicsim::clock {
namespace {

constexpr std::uint32_t kMetricV6 = 256;  // Linux's default
constexpr unsigned kMaxPrefixWithBroadcast = 30;

struct Route {
  const NetDevice* device;
  RouteAddress destination;
  unsigned prefix;
  std::uint8_t table = RT_TABLE_MAIN;
  std::uint8_t type = RTN_UNICAST;
  std::uint8_t scope = RT_SCOPE_UNIVERSE;
  std::uint8_t protocol = RTPROT_KERNEL;
  std::optional<RouteAddress> source{};
  std::uint32_t metric = 0;
};

// subnet_of() gives the subnet of an interface in a family; nullopt: no address of that family.
struct Subnet {
  RouteAddress own;
  unsigned prefix;
};
std::optional<Subnet> subnet_of(const abi::NetworkInterface& interface, std::uint8_t family) {
  const bool is_v4 = family == AF_INET;
  const unsigned prefix = is_v4 ? interface.ipv4_prefix : interface.ipv6_prefix;
  if (prefix == 0) return std::nullopt;
  return Subnet{is_v4 ? RouteAddress::v4(interface.ipv4) : RouteAddress::v6(interface.ipv6), prefix};
}

// Visits each subnet of other hosts once, except those in which a device of this host is.
template <class Visit>
void visit_far_subnets(const HostView& view, std::uint8_t family, Visit visit) {
  for (const abi::NetworkInterface& each : view.all) {
    const auto far = each.host != view.host ? subnet_of(each, family) : std::nullopt;
    if (!far) continue;
    const auto covers = [&](const abi::NetworkInterface& other) {
      const auto near = &other < &each || other.host == view.host ? subnet_of(other, family) : std::nullopt;
      return near && near->prefix == far->prefix && far->own.is_in(near->own, near->prefix);
    };
    if (std::ranges::none_of(view.all, covers)) visit(*far);
  }
}

template <class Visit>
void visit_main_v4(const HostView& view, const NetDevices& devices, Visit visit) {
  const auto on_link = [](const NetDevice& device, const Subnet& subnet, std::uint8_t protocol) {
    return Route{.device = &device,
                 .destination = subnet.own.subnet(subnet.prefix),
                 .prefix = subnet.prefix,
                 .scope = RT_SCOPE_LINK,
                 .protocol = protocol,
                 .source = RouteAddress::v4(device.nic->ipv4)};
  };
  for (const NetDevice& device : devices)
    if (const auto subnet = device.nic != nullptr ? subnet_of(*device.nic, AF_INET) : std::nullopt)
      visit(on_link(device, *subnet, RTPROT_KERNEL));
  if (devices.size() < 2) return;
  visit_far_subnets(view, AF_INET, [&](const Subnet& far) { visit(on_link(devices.begin()[1], far, RTPROT_STATIC)); });
}

template <class Visit>
void visit_local_v4(const NetDevices& devices, Visit visit) {
  for (const NetDevice& device : devices) {
    const unsigned prefix = device.ipv4_prefix();
    if (prefix == 0) continue;
    const RouteAddress own = RouteAddress::v4(device.ipv4().data());
    Route route{.device = &device,
                .destination = own,
                .prefix = 32,
                .table = RT_TABLE_LOCAL,
                .type = RTN_LOCAL,
                .scope = RT_SCOPE_HOST,
                .source = own};
    visit(route);
    if (device.nic == nullptr) {
      route.destination = own.subnet(prefix);
      route.prefix = prefix;
      visit(route);
    }
    if (prefix > kMaxPrefixWithBroadcast) continue;
    route.destination = RouteAddress::v4(device.ipv4_broadcast().data());
    route.prefix = 32;
    route.type = RTN_BROADCAST;
    route.scope = RT_SCOPE_LINK;
    visit(route);
  }
}

template <class Visit>
void visit_main_v6(const HostView& view, const NetDevices& devices, Visit visit) {
  const auto on_link = [](const NetDevice& device, const RouteAddress& destination, unsigned prefix) {
    return Route{.device = &device, .destination = destination.subnet(prefix), .prefix = prefix, .metric = kMetricV6};
  };
  for (const NetDevice& device : devices) {
    if (device.nic == nullptr) {
      visit(on_link(device, RouteAddress::v6(&in6addr_loopback), 128));
      continue;
    }
    if (const auto subnet = subnet_of(*device.nic, AF_INET6)) visit(on_link(device, subnet->own, subnet->prefix));
    visit(on_link(device, RouteAddress::v6(abi::link_local_of(*device.nic).data()), 64));
  }
  if (devices.size() < 2) return;
  visit_far_subnets(view, AF_INET6, [&](const Subnet& far) {
    Route route = on_link(devices.begin()[1], far.own, far.prefix);
    route.protocol = RTPROT_STATIC;
    visit(route);
  });
}

template <class Visit>
void visit_local_v6(const NetDevices& devices, Visit visit) {
  for (const NetDevice& device : devices) {
    const auto local = [&](const RouteAddress& own) {
      visit(Route{.device = &device, .destination = own, .prefix = 128, .table = RT_TABLE_LOCAL, .type = RTN_LOCAL});
    };
    if (device.nic == nullptr) {
      local(RouteAddress::v6(&in6addr_loopback));
      continue;
    }
    if (device.nic->ipv6_prefix != 0) local(RouteAddress::v6(device.nic->ipv6));
    local(RouteAddress::v6(abi::link_local_of(*device.nic).data()));
    constexpr std::uint8_t kMulticast[16] = {0xff};
    visit(Route{.device = &device,
                .destination = RouteAddress::v6(kMulticast),
                .prefix = 8,
                .table = RT_TABLE_LOCAL,
                .type = RTN_MULTICAST,
                .metric = kMetricV6});
  }
}

template <class Visit>
void visit_routes(const HostView& view, const NetDevices& devices, std::uint8_t family, Visit visit) {
  if (family == AF_INET) {
    visit_main_v4(view, devices, visit);
    visit_local_v4(devices, visit);
  } else {
    visit_main_v6(view, devices, visit);
    visit_local_v6(devices, visit);
  }
}

void put_route(const Route& route, NetlinkDatagram& message) {
  rtmsg header{};
  header.rtm_family = route.destination.family;
  header.rtm_dst_len = std::uint8_t(route.prefix);
  header.rtm_table = route.table;
  header.rtm_protocol = route.protocol;
  header.rtm_scope = route.scope;
  header.rtm_type = route.type;
  message.put_header(header);
  message.put(RTA_TABLE, std::uint32_t{route.table});
  put_address(message, RTA_DST, route.destination);
  message.put(RTA_OIF, std::uint32_t{route.device->index});
  if (route.source) put_address(message, RTA_PREFSRC, *route.source);
  if (route.destination.family != AF_INET6) return;
  message.put(RTA_PRIORITY, route.metric);
  message.put(RTA_PREF, std::uint8_t{0});
}

// A route of the local table first, then the one with the longest prefix, then the first.
std::optional<Route> find_route(const HostView& view, const NetDevices& devices, const RouteAddress& to, int device) {
  std::optional<Route> best;
  const auto is_better = [&](const Route& route) {
    if (!best) return true;
    if (route.table != best->table) return route.table == RT_TABLE_LOCAL;
    return route.prefix > best->prefix;
  };
  visit_routes(view, devices, to.family, [&](const Route& route) {
    const bool leaves_by = device == 0 || int(route.device->index) == device || route.type == RTN_LOCAL;
    if (leaves_by && to.is_in(route.destination, route.prefix) && is_better(route)) best = route;
  });
  return best;
}

// Source address of a packet that takes this route.
std::optional<RouteAddress> source_of(const Route& route, const RouteAddress& to) {
  if (route.type == RTN_LOCAL) return to;
  if (route.source || route.device->nic == nullptr) return route.source;
  const abi::NetworkInterface& nic = *route.device->nic;
  const RouteAddress link_local = RouteAddress::v6(abi::link_local_of(nic).data());
  return to.is_in(link_local, 64) || nic.ipv6_prefix == 0 ? link_local : RouteAddress::v6(nic.ipv6);
}

// Writes the decision for one destination. It is the host's own and not an entry of a table.
void put_decision(const NetDevices& devices, const Route& route, const RouteAddress& to, bool names_table,
                  NetlinkDatagram& message) {
  const bool is_v4 = to.family == AF_INET;
  const bool is_local = route.type == RTN_LOCAL;
  rtmsg header{};
  header.rtm_family = to.family;
  header.rtm_dst_len = std::uint8_t(to.bits());
  header.rtm_table = names_table ? route.table : std::uint8_t{RT_TABLE_MAIN};
  header.rtm_type = route.type;
  if (!is_v4) header.rtm_protocol = route.protocol;
  if (is_v4) header.rtm_flags = RTM_F_CLONED;
  message.put_header(header);
  message.put(RTA_TABLE, std::uint32_t{header.rtm_table});
  put_address(message, RTA_DST, to);
  message.put(RTA_OIF, std::uint32_t{is_local ? devices.begin()->index : route.device->index});
  if (const auto source = source_of(route, to)) put_address(message, RTA_PREFSRC, *source);
  if (!is_v4) message.put(RTA_PRIORITY, route.metric);
  message.put(RTA_CACHEINFO, rta_cacheinfo{});
  if (!is_v4) message.put(RTA_PREF, std::uint8_t{0});
}

bool wants_route(const DumpFilter& filter, const Route& route) {
  const auto admits = [](auto wanted, auto found) { return wanted == 0 || wanted == decltype(wanted)(found); };
  return admits(filter.table, route.table) && admits(filter.protocol, route.protocol) &&
         admits(filter.type, route.type) && admits(filter.index, route.device->index);
}

}  // namespace

int dump_routes(const HostView& view, Dump& dump) {
  const std::uint32_t table = dump.filter().table;
  if (table != 0 && table != RT_TABLE_MAIN && table != RT_TABLE_LOCAL) return ENOENT;
  const NetDevices devices(view);
  for (const std::uint8_t family : {AF_INET, AF_INET6}) {
    if (!wants_family(dump.filter(), family)) continue;
    visit_routes(view, devices, family, [&](const Route& route) {
      if (wants_route(dump.filter(), route))
        dump.item(RTM_NEWROUTE, [&](NetlinkDatagram& message) { put_route(route, message); });
    });
  }
  return 0;
}

int get_route(const HostView& view, const NetlinkCaller& caller, const NetlinkMessage& request,
              NetlinkDatagram& answer) {
  const auto header = read_value<rtmsg>(request.payload());
  if (!header) return EINVAL;
  if (header->rtm_family != AF_INET && header->rtm_family != AF_INET6) return EOPNOTSUPP;
  const auto attributes = request.attributes_behind(sizeof *header);
  // RTA_IIF asks how a received packet would be forwarded: a host forwards none.
  if (attributes.find(RTA_IIF)) return EOPNOTSUPP;
  const auto given = attributes.find(RTA_DST);
  const auto to = given ? RouteAddress::read(header->rtm_family, *given) : std::nullopt;
  if (!to) return EINVAL;
  const NetDevices devices(view);
  const int device = attributes.get<std::int32_t>(RTA_OIF).value_or(0);
  if (device != 0 && devices.find(device) == nullptr) return ENODEV;
  const auto route = find_route(view, devices, *to, device);
  if (!route) return ENETUNREACH;
  answer.begin(RTM_NEWROUTE, 0, request.header.nlmsg_seq, caller.port);
  if ((header->rtm_flags & RTM_F_FIB_MATCH) != 0) {
    put_route(*route, answer);
  } else {
    put_decision(devices, *route, *to, (header->rtm_flags & RTM_F_LOOKUP_TABLE) != 0, answer);
  }
  answer.end();
  return 0;
}

}  // namespace rnicsim::clock
