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
    bool one_family = false; // who has the port for another address family does not matter, if it does not to him
  };

  // 0 with `binding`'s port chosen, if it was 0. EADDRINUSE: another one has that address; EADDRNOTAVAIL: one of the
  // two is a wildcard, or no port is left.
  int bind(Owner owner, Binding& binding);
  // What it is bound to is another address of the same port by now, or shares it otherwise.
  void change(Owner owner, const Binding& binding);
  // As bind(), of one that shares its port: who listens shares it no more.
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
