// SPDX-License-Identifier: Apache-2.0
// The bound ports of a port space, with Linux's rules for sharing a port.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "model/host/cm/ip_address.h"

namespace rnicsim::host {

class PortTable {
 public:
  using Owner = std::uint32_t;
  struct Binding {
    IpAddress address;  // with the bound port
    bool reuse = false;
    bool one_family = false;  // no conflict with a binding of the other address family that is also one_family
  };

  // Binds `binding`, and chooses its port if the port is 0. 0 or errno. EADDRINUSE: another owner has the address;
  // EADDRNOTAVAIL: one of two conflicting addresses is a wildcard, or no port is free.
  int bind(Owner owner, Binding& binding);
  // Replaces the binding after the owner's address or its options changed.
  void change(Owner owner, const Binding& binding);
  // Ends the sharing of the owner's port (reuse), since a listener does not share its port. 0 or errno as bind().
  int listen(Owner owner);
  void release(Owner owner) { bindings_.erase(owner); }

 private:
  // The range of /proc/sys/net/ipv4/ip_local_port_range.
  static constexpr std::uint16_t kFirstEphemeral = 32768;
  static constexpr std::uint16_t kLastEphemeral = 60999;

  int conflict(Owner owner, const Binding& binding) const;  // 0: no conflict

  std::map<Owner, Binding> bindings_;
  std::uint16_t next_ = kFirstEphemeral;
};

}  // namespace rnicsim::host
