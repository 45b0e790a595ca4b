// SPDX-License-Identifier: Apache-2.0
// The GID table of a NIC, and the MAC addresses of remote GIDs.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/abi/attach.h"

namespace rnicsim::host {

using Gid = std::array<std::uint8_t, 16>;
using Mac = std::array<std::uint8_t, 6>;

Gid ipv4_mapped_gid(std::span<const std::uint8_t, 4> ipv4);
Mac mac_of(const abi::NetworkInterface& interface);

// Index 0: RoCEv2 link-local, 1: RoCEv2 over IPv4, 2: RoCEv2 over its global IPv6 address.
inline constexpr std::uint32_t kIpv4GidIndex = 1;
std::vector<Gid> gids_of(const abi::NetworkInterface& interface);

// True if the host looks for the address on the interface's link; true for every link-local address.
bool is_on_link(const abi::NetworkInterface& interface, const Gid& address);

// The hosts that neighbour discovery finds on the fabric. Copies share one table, since each host of a large fabric has
// one.
class Neighbours {
 public:
  explicit Neighbours(std::vector<abi::NetworkInterface> fabric);
  const std::vector<abi::NetworkInterface>& interfaces() const { return table_->interfaces; }
  std::optional<Mac> resolve(const Gid& gid) const;
  std::optional<Gid> gid_of(std::uint16_t lid) const;  // as a subnet manager resolves a LID

 private:
  struct Table {
    std::vector<abi::NetworkInterface> interfaces;
    std::map<Gid, std::size_t> by_gid;  // the first interface with the GID
    std::map<std::uint16_t, std::size_t> by_lid;
  };
  std::shared_ptr<const Table> table_;
};

}  // namespace rnicsim::host
