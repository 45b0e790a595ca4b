// SPDX-License-Identifier: Apache-2.0
#include "model/host/gids.h"

#include <algorithm>
#include <utility>

#include "model/abi/host_files.h"
#include "model/abi/net_address.h"

namespace rnicsim::host {

Gid ipv4_mapped_gid(std::span<const std::uint8_t, 4> ipv4) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ipv4[0], ipv4[1], ipv4[2], ipv4[3]};
}

Mac mac_of(const abi::NetworkInterface& interface) { return std::to_array(interface.mac); }

std::vector<Gid> gids_of(const abi::NetworkInterface& interface) {
  return {abi::link_local_of(interface), ipv4_mapped_gid(interface.ipv4), std::to_array(interface.ipv6)};
}

bool is_on_link(const abi::NetworkInterface& interface, const Gid& address) {
  const bool is_link_local = address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
  if (is_link_local) return interface.ipv4_prefix != 0 || interface.ipv6_prefix != 0;
  abi::NetAddress net;
  std::ranges::copy(address, net.ip);
  return abi::in_subnet(net, interface);
}

Neighbours::Neighbours(std::vector<abi::NetworkInterface> fabric) {
  auto table = std::make_shared<Table>();
  table->interfaces = std::move(fabric);
  for (std::size_t i = 0; i < table->interfaces.size(); ++i) {
    const auto& interface = table->interfaces[i];
    for (const auto& gid : gids_of(interface)) table->by_gid.emplace(gid, i);
    if (interface.lid != 0) table->by_lid.emplace(interface.lid, i);
  }
  table_ = std::move(table);
}

std::optional<Mac> Neighbours::resolve(const Gid& gid) const {
  const auto found = table_->by_gid.find(gid);
  return found != table_->by_gid.end() ? std::optional(mac_of(interfaces()[found->second])) : std::nullopt;
}

std::optional<Gid> Neighbours::gid_of(std::uint16_t lid) const {
  const auto found = table_->by_lid.find(lid);
  if (found == table_->by_lid.end()) return std::nullopt;
  return gids_of(interfaces()[found->second])[kIpv4GidIndex];
}

}  // namespace rnicsim::host
