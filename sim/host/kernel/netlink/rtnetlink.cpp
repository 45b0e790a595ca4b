// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/netlink/rtnetlink.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>

#include "model/abi/net_address.h"

namespace rnicsim::clock {
namespace {

// Message types come in groups of four: new, delete, get, set.
bool is_get(const NetlinkMessage& request) { return (request.header.nlmsg_type & 3) == 2; }

// Every message of rtnetlink begins with a family. One without it is ignored.
bool is_empty(const NetlinkMessage& request) { return request.payload().size() < sizeof(rtgenmsg); }

bool is_dump(const NetlinkMessage& request) {
  return is_get(request) && !is_empty(request) && (request.header.nlmsg_flags & NLM_F_DUMP) != 0;
}

int get(const HostView& view, const NetlinkCaller& caller, const NetlinkMessage& request, NetlinkDatagram& answer) {
  if (is_empty(request)) return 0;
  if (!is_get(request)) return EPERM;
  switch (request.header.nlmsg_type) {
    case RTM_GETLINK: return get_link(view, caller, request, answer);
    case RTM_GETROUTE: return get_route(view, caller, request, answer);
    case RTM_GETNEIGH: return get_neighbour(view, caller, request, answer);
    default: return EOPNOTSUPP;
  }
}

bool has(const NetlinkAttributes& attributes, unsigned type) { return attributes.find(type).has_value(); }

// No device has a master or a named kind: a filter for either selects nothing.
void read_link_filter(const NetlinkMessage& request, DumpFilter& filter) {
  const auto attributes = request.attributes_behind(sizeof(ifinfomsg));
  filter.nothing = filter.family == AF_BRIDGE || has(attributes, IFLA_MASTER) || has(attributes, IFLA_LINKINFO);
}

void read_address_filter(const NetlinkCaller& caller, const NetlinkMessage& request, DumpFilter& filter) {
  const auto header = read_value<ifaddrmsg>(request.payload());
  if (header && caller.strict) filter.index = std::int32_t(header->ifa_index);
}

void read_route_filter(const NetlinkCaller& caller, const NetlinkMessage& request, DumpFilter& filter) {
  const auto header = read_value<rtmsg>(request.payload());
  if (!header) return;
  filter.nothing = (header->rtm_flags & RTM_F_CLONED) != 0;  // there are no cached routes
  if (!caller.strict) return;
  const auto attributes = request.attributes_behind(sizeof *header);
  filter.protocol = header->rtm_protocol;
  filter.type = header->rtm_type;
  filter.table = attributes.get<std::uint32_t>(RTA_TABLE).value_or(header->rtm_table);
  filter.index = attributes.get<std::int32_t>(RTA_OIF).value_or(0);
}

void read_neighbour_filter(const NetlinkMessage& request, DumpFilter& filter) {
  const auto header = read_value<ndmsg>(request.payload());
  const auto attributes = request.attributes_behind(sizeof(ndmsg));
  filter.nothing =
      filter.family == AF_BRIDGE || has(attributes, NDA_MASTER) || (header && (header->ndm_flags & NTF_PROXY) != 0);
  filter.index = attributes.get<std::int32_t>(NDA_IFINDEX).value_or(0);
}

int read_filter(const NetlinkCaller& caller, const NetlinkMessage& request, DumpFilter& filter) {
  filter.family = read_value<rtgenmsg>(request.payload())->rtgen_family;
  switch (request.header.nlmsg_type) {
    case RTM_GETLINK: read_link_filter(request, filter); return 0;
    case RTM_GETADDR: read_address_filter(caller, request, filter); return 0;
    case RTM_GETROUTE: read_route_filter(caller, request, filter); return 0;
    case RTM_GETNEIGH: read_neighbour_filter(request, filter); return 0;
    case RTM_GETRULE: return 0;
    // A host has none of these.
    case RTM_GETQDISC:
    case RTM_GETTCLASS:
    case RTM_GETTFILTER:
    case RTM_GETCHAIN:
    case RTM_GETNEXTHOP:
    case RTM_GETNSID: filter.nothing = true; return 0;
    default: return EOPNOTSUPP;
  }
}

int dump(const HostView& view, std::uint16_t type, Dump& dump) {
  switch (type) {
    case RTM_GETLINK: dump_links(view, dump); return 0;
    case RTM_GETADDR: dump_addresses(view, dump); return 0;
    case RTM_GETROUTE: return dump_routes(view, dump);
    case RTM_GETNEIGH: dump_neighbours(view, dump); return 0;
    case RTM_GETRULE: dump_rules(dump); return 0;
    default: return 0;
  }
}

}  // namespace

constinit const NetlinkProtocol kRouteNetlink{is_dump, get, read_filter, dump};

std::size_t RouteAddress::size() const { return family == AF_INET ? 4 : 16; }

RouteAddress RouteAddress::v4(const void* bytes) {
  RouteAddress address{.family = AF_INET};
  memcpy(address.bytes, bytes, 4);
  return address;
}
RouteAddress RouteAddress::v6(const void* bytes) {
  RouteAddress address{.family = AF_INET6};
  memcpy(address.bytes, bytes, 16);
  return address;
}
std::optional<RouteAddress> RouteAddress::read(std::uint8_t family, NetlinkBytes bytes) {
  if (family == AF_INET && bytes.size() == 4) return v4(bytes.data());
  if (family == AF_INET6 && bytes.size() == 16) return v6(bytes.data());
  return std::nullopt;
}

RouteAddress RouteAddress::subnet(unsigned prefix) const {
  std::uint8_t mask[16];
  fill_mask(mask, sizeof mask, prefix);
  RouteAddress result = *this;
  for (std::size_t i = 0; i < sizeof mask; ++i) result.bytes[i] &= mask[i];
  return result;
}
bool RouteAddress::is_in(const RouteAddress& subnet, unsigned prefix) const {
  return family == subnet.family && abi::same_prefix(bytes, subnet.bytes, prefix);
}

void put_address(NetlinkDatagram& message, std::uint16_t type, const RouteAddress& address) {
  message.put_bytes(type, address.bytes, address.size());
}

}  // namespace rnicsim::clock
