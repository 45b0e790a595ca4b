// Addresses that the walk knows, and which of them may be bound at the same time (Linux, cma_check_port).
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
    nobody,      // on the link, but nobody's
    away,        // no route leads there
    link_local,  // without its link
    group,
    strange,  // of a family that nobody knows
  };
  Kind kind = Kind::any;
  bool ipv6 = false;
  std::uint16_t port = 0;

  bool wildcard() const { return kind == Kind::any || kind == Kind::loopback; }
  std::string text() const;
  bool usable() const { return kind != Kind::strange; }
  // As a program on that host writes it.
  sockaddr_storage address(std::uint32_t host) const;
};

struct Binding {
  Place place;
  bool reuse = false;
  bool family_only = false;
  bool listens = false;
};

// Of a host, by its processes' ids: who has bound what, as far as the programs know.
class Ports {
 public:
  using Owner = const void*;

  // What binding it may answer; with `listens`, what listening there may.
  std::set<int> answers(rdma_port_space space, Owner owner, const Binding& binding) const;
  void add(rdma_port_space space, Owner owner, const Binding& binding) { bindings_[space].push_back({owner, binding}); }
  void remove(Owner owner);
  Binding* find(Owner owner);
  // Who would get a request for that place; nullptr: nobody, or one cannot tell.
  Owner listener(rdma_port_space space, const Place& place) const;

  // Where somebody listens, as a peer would write it.
  std::vector<Place> listening(rdma_port_space space, bool from_peer) const;

  // A call that changes something: within it, others' calls cannot be foretold.
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
