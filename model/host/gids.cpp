#include "model/host/gids.h"

#include <algorithm>

#include "model/abi/host_files.h"

namespace rnicsim::host {

Gid ipv4_mapped_gid(std::span<const std::uint8_t, 4> ipv4) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ipv4[0], ipv4[1], ipv4[2], ipv4[3]};
}

Mac mac_of(const abi::NetworkInterface& interface) { return std::to_array(interface.mac); }

std::vector<Gid> gids_of(const abi::NetworkInterface& interface) {
  return {abi::link_local_of(interface), ipv4_mapped_gid(interface.ipv4), std::to_array(interface.ipv6)};
}

std::optional<Mac> Neighbours::resolve(const Gid& gid) const {
  for (const auto& interface : fabric_)
    if (const auto gids = gids_of(interface); std::ranges::find(gids, gid) != gids.end()) return mac_of(interface);
  return std::nullopt;
}

std::optional<Gid> Neighbours::gid_of(std::uint16_t lid) const {
  const auto found = std::ranges::find(fabric_, lid, &abi::NetworkInterface::lid);
  if (lid == 0 || found == fabric_.end()) return std::nullopt;
  return gids_of(*found)[kIpv4GidIndex];
}

}  // namespace rnicsim::host
