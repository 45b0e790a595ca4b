#include "model/host/gids.h"

#include <algorithm>

#include "model/abi/host_files.h"

namespace rnicsim::host {

Gid ipv4_mapped_gid(std::span<const std::uint8_t, 4> ipv4) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ipv4[0], ipv4[1], ipv4[2], ipv4[3]};
}

Mac mac_of(const abi::HostEntry& host) { return std::to_array(host.mac); }

std::vector<Gid> gids_of(const abi::HostEntry& host) {
  return {abi::link_local_of(host), ipv4_mapped_gid(host.ipv4), std::to_array(host.ipv6)};
}

std::optional<Mac> Neighbours::resolve(const Gid& gid) const {
  for (const auto& host : hosts_)
    if (const auto gids = gids_of(host); std::ranges::find(gids, gid) != gids.end()) return mac_of(host);
  return std::nullopt;
}

std::optional<Gid> Neighbours::gid_of(std::uint16_t lid) const {
  const auto host = std::ranges::find(hosts_, lid, &abi::HostEntry::lid);
  if (lid == 0 || host == hosts_.end()) return std::nullopt;
  return gids_of(*host)[kIpv4GidIndex];
}

}  // namespace rnicsim::host
