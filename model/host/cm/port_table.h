// The ports of a port space, and who may have which together (as Linux binds sockets).
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
    IpAddress address;       // its port is the one bound
    bool reuse = false;
    bool listens = false;
    bool ipv6_only = false;
  };

  // 0 with `binding`'s port chosen, if it was 0. EADDRINUSE: another one has that address; EADDRNOTAVAIL: one of the
  // two is a wildcard, or no port is left.
  int bind(Owner owner, Binding& binding);
  // As bind(): several may have a port only as long as none of them listens.
  int listen(Owner owner);
  void release(Owner owner) { bindings_.erase(owner); }

 private:
  // As /proc/sys/net/ipv4/ip_local_port_range.
  static constexpr std::uint16_t kFirstEphemeral = 32768;
  static constexpr std::uint16_t kLastEphemeral = 60999;

  int conflict(Owner owner, const Binding& binding) const;  // 0: there is none

  std::map<Owner, Binding> bindings_;
  std::uint16_t next_ = kFirstEphemeral;
};

}  // namespace rnicsim::host
