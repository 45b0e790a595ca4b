// SPDX-License-Identifier: Apache-2.0
// Addresses of the walk, and which of them may be bound at the same time (rules of Linux, cma_check_port).
#pragma once

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <sys/socket.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace rnicsim::testing {

struct Place {
  enum class Kind : std::uint8_t {
    any,
    loopback,
    own,
    peer,
    nobody,      // on the link, without a host
    away,        // no route to the address
    link_local,  // without scope ID
    group,
    strange,  // of an unknown address family
  };
  Kind kind = Kind::any;
  bool ipv6 = false;
  std::uint16_t port = 0;

  bool wildcard() const { return kind == Kind::any || kind == Kind::loopback; }
  std::string text() const;
  bool usable() const { return kind != Kind::strange; }
  // The sockaddr of this place, as a program on `host` writes the address.
  sockaddr_storage address(std::uint32_t host) const;
};

struct Binding {
  Place place;
  bool reuse = false;
  bool family_only = false;
  bool listens = false;
};

// Bindings of one host, by the id that holds them, as far as the programs know.
class Ports {
 public:
  using Owner = const void*;

  // Results (0 or errno) that bind may have; `listens`: results of listen.
  std::set<int> answers(rdma_port_space space, Owner owner, const Binding& binding) const;
  void add(rdma_port_space space, Owner owner, const Binding& binding) { bindings_[space].push_back({owner, binding}); }
  void remove(Owner owner);
  Binding* find(Owner owner);
  // Receiver of a request to that place; nullptr: no listener, or ambiguous.
  Owner listener(rdma_port_space space, const Place& place) const;

  // Places with a listener, as a peer writes the address.
  std::vector<Place> listening(rdma_port_space space, bool from_peer) const;

  // A call that changes bindings. While it runs, the results of other calls cannot be predicted.
  class Change {
   public:
    explicit Change(Ports& ports) : ports_(ports), before_(++ports.begun_), alone_(ports.under_way_++ == 0) {}
    ~Change() { --ports_.under_way_; }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    bool undisturbed() const { return alone_ && ports_.begun_ == before_; }

   private:
    Ports& ports_;
    const std::uint64_t before_;
    const bool alone_;
  };

 private:
  struct Entry {
    Owner owner;
    Binding binding;
  };
  std::map<rdma_port_space, std::vector<Entry>> bindings_;
  std::uint64_t begun_ = 0;
  std::uint32_t under_way_ = 0;
};

}  // namespace rnicsim::testing
