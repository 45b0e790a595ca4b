// What a walker knows of the ids that it made, and what the walkers know of each other.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/base/units.h"
#include "tests/soak/connections_walk/ports.h"
#include "tests/soak/connections_walk/shapes.h"

namespace rnicsim::testing {

struct Joined {
  Place group;
  bool told = false;
  Duration since;
};

// An rdma_cm_id. Its QP, if it has one, is as the library left it.
struct Ident {
  enum class Qp : std::uint8_t { none, init, rts, error, unknown };

  explicit Ident(const Shape& shape) : shapes(shape) {}

  rdma_cm_id* id = nullptr;
  std::uint32_t host = 0;
  std::uint64_t token = 0;  // begins what it says to its peer, and every message
  rdma_port_space space{};
  bool datagram = false;
  bool synchronous = false;
  std::size_t channel = 0;  // of an asynchronous one
  Shapes shapes;

  bool device = false;           // the library knows it
  bool bound_to_device = false;  // the kernel does, whatever the id's state
  std::optional<bool> ipv6;      // since it is bound
  std::optional<bool> family_only;
  bool reuse = false;
  bool address_found = true;
  bool unheard = false;
  bool ends_untold = false;

  std::weak_ptr<Ident> peer;
  bool unique = true;             // its QPN is no other connection's
  bool ended = false;             // it may have told its peer so
  Ports::Owner target = nullptr;  // who listens where it connects to
  std::vector<std::uint8_t> said;
  rdma_conn_param wanted{};
  Duration since;  // it awaits its peer's answer

  Qp qp = Qp::none;
  bool connected = false;        // it was in RTS
  std::uint64_t peer_token = 0;  // whose messages come; 0: unknown
  bool shares_receives = false;
  std::deque<std::uint64_t> sends, receives;
  std::uint64_t sent = 0, received = 0;
  std::uint32_t next_cell = 0, first_cell = 0;
  std::vector<std::unique_ptr<Joined>> groups;

  Surroundings surroundings() const {
    const auto other = peer.lock();
    const bool may_end = !other || other->ended;
    return {address_found, unheard, may_end, may_end || !unique || !other->unique, ends_untold};
  }
};

class ConnectionWalker;

// What the walkers tell each other, out of band.
struct ConnectionTown {
  std::uint64_t seed = 1;
  bool broken = false;  // one found a fault: all stop
  Ports ports[2];
  std::map<std::uint64_t, std::weak_ptr<Ident>> by_token;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::weak_ptr<Ident>> by_qpn;  // of a host
  std::uint32_t next_qpn = 0x800000;                                               // of programs with a QP of their own
  std::deque<std::string> moves;                                                   // the last ones
  std::uint64_t established = 0, messages = 0, calls = 0;
};

}  // namespace rnicsim::testing
