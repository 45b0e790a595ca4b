// SPDX-License-Identifier: Apache-2.0
// Expected state of the ids that a walker made, and the state that all walkers share.
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

// An rdma_cm_id. `qp`: state of the QP as the library left the QP.
struct Ident {
  enum class Qp : std::uint8_t { none, init, rts, error, unknown };

  explicit Ident(const Shape& shape) : shapes(shape) {}

  rdma_cm_id* id = nullptr;
  std::uint32_t host = 0;
  std::uint64_t token = 0;  // first bytes of the private data for the peer, and of every message
  rdma_port_space space{};
  bool datagram = false;
  bool synchronous = false;
  std::size_t channel = 0;  // index of the channel; asynchronous ids only
  Shapes shapes;

  bool device = false;           // the library has the device (id->verbs)
  bool bound_to_device = false;  // the kernel is bound to the device, in any state of the id
  std::optional<bool> ipv6;      // set when bound
  std::optional<bool> family_only;
  bool reuse = false;
  bool address_found = true;
  bool unheard = false;
  bool ends_untold = false;

  std::weak_ptr<Ident> peer;
  bool unique = true;             // no other connection uses the QPN
  bool ended = false;             // it may have told the peer of the end
  Ports::Owner target = nullptr;  // listener at the address of the connection
  std::vector<std::uint8_t> said;
  rdma_conn_param wanted{};
  Duration since;  // start of the wait for the peer's answer

  Qp qp = Qp::none;
  bool connected = false;        // the QP was in RTS
  std::uint64_t peer_token = 0;  // sender of the messages that arrive; 0: unknown
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

// State that the walkers share outside of the simulated network.
struct ConnectionTown {
  std::uint64_t seed = 1;
  bool broken = false;  // a walker found a fault: all walkers stop
  Ports ports[2];
  std::map<std::uint64_t, std::weak_ptr<Ident>> by_token;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::weak_ptr<Ident>> by_qpn;  // key: host, QPN
  std::uint32_t next_qpn = 0x800000;  // QPNs of programs that bring their own QP
  std::deque<std::string> moves;      // the last moves, for the report of a fault
  std::uint64_t established = 0, messages = 0, calls = 0;
};

}  // namespace rnicsim::testing
