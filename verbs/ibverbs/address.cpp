// SPDX-License-Identifier: Apache-2.0
// Addresses of peers: taken from a received datagram, and resolved to a MAC address.
#include <infiniband/verbs.h>

#include <cstring>
#include <optional>

#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/device.h"
#include "verbs/ibverbs/path.h"

namespace rnicsim::verbs {

namespace {

constexpr std::uint16_t kNoVlan = 0xffff;
constexpr std::size_t kIpv4HeaderAt = 20;  // offset in the 40 bytes before a UD payload

struct Route {
  ibv_gid source{};
  ibv_gid destination{};
  std::uint32_t flow_label = 0;
  std::uint8_t traffic_class = 0;
};

ibv_gid mapped_ipv4(const std::uint8_t* address) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  std::memcpy(gid.raw + 12, address, 4);
  return gid;
}

// The 40 bytes before a UD payload hold an IPv6 header, or an IPv4 header in the last 20 bytes.
Route route_of(const ibv_grh& grh) {
  Route route;
  const std::uint32_t first = __builtin_bswap32(grh.version_tclass_flow);
  if (first >> 28 == 6) {
    route.source = grh.sgid;
    route.destination = grh.dgid;
    route.flow_label = first & 0xfffff;
    route.traffic_class = std::uint8_t(first >> 20);
    return route;
  }
  const auto* header = reinterpret_cast<const std::uint8_t*>(&grh) + kIpv4HeaderAt;
  route.traffic_class = header[1];
  route.source = mapped_ipv4(header + 12);
  route.destination = mapped_ipv4(header + 16);
  return route;
}

// Index of the RoCEv2 entry of `gid`, else of its first entry of any type.
std::optional<std::uint8_t> find_gid(Context& context, std::uint8_t port, const ibv_gid& gid) {
  std::optional<std::uint8_t> any;
  for (std::uint32_t index = 0; index < 256; ++index) {
    abi::GidEntry entry;
    const int error = query_gid_entry(context, port, index, entry);
    if (error == EINVAL) break;
    if (error != 0 || std::memcmp(entry.gid, gid.raw, sizeof gid.raw) != 0) continue;
    if (entry.type == IBV_GID_TYPE_ROCE_V2) return std::uint8_t(index);
    if (!any) any = std::uint8_t(index);
  }
  return any;
}

int attributes_of(Context& context, std::uint8_t port, const ibv_wc& wc, const ibv_grh& grh, ibv_ah_attr& to) {
  to = {};
  to.dlid = wc.slid;
  to.src_path_bits = wc.dlid_path_bits;
  to.port_num = port;
  if (!(wc.wc_flags & IBV_WC_GRH)) return 0;
  const Route route = route_of(grh);
  const auto index = find_gid(context, port, route.destination);
  if (!index) return EINVAL;
  to.is_global = 1;
  to.grh.dgid = route.source;
  to.grh.sgid_index = *index;
  to.grh.flow_label = route.flow_label;
  to.grh.hop_limit = 0xff;
  to.grh.traffic_class = route.traffic_class;
  return 0;
}

int resolve(Context& context, const ibv_ah_attr& attributes, std::uint8_t* mac) {
  abi::AddressVector vector = encode_path(context, attributes);
  if (const int error = context.port.resolve_path(vector)) return error;
  std::memcpy(mac, vector.remote_mac, sizeof vector.remote_mac);
  return 0;
}

}  // namespace

}  // namespace rnicsim::verbs

using namespace rnicsim::verbs;

extern "C" {

int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port, ibv_wc* wc, ibv_grh* grh, ibv_ah_attr* attributes) {
  return guarded_minus_one([&] { return attributes_of(Context::of(context), port, *wc, *grh, *attributes); });
}

int ibv_resolve_eth_l2_from_gid(ibv_context* context, ibv_ah_attr* attributes, std::uint8_t mac[ETHERNET_LL_SIZE],
                                std::uint16_t* vlan) {
  return guarded([&] {
    if (const int error = resolve(Context::of(context), *attributes, mac)) return error;
    if (vlan != nullptr) *vlan = kNoVlan;
    return 0;
  });
}

}  // extern "C"
