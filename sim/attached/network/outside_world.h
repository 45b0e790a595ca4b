// SPDX-License-Identifier: Apache-2.0
// Hosts outside of the simulation, at the other end of a live wire (docs/live-wire.md), as the run and the out-of-band
// network see them. Such a host is in the topology but runs no simulated programs; its address leads out of the
// simulation.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/abi/attach.h"

namespace rnicsim::sim {

class Network;

class OutsideWorld {
 public:
  virtual ~OutsideWorld() = default;

  // --- Called by the network.
  virtual void join(Network& network) = 0;
  virtual bool has(std::uint32_t host) const = 0;
  // A program on `host` begins, or ends, to listen at `local`.
  virtual void listens(std::uint32_t host, const abi::NetAddress& local, bool v6_only) = 0;
  virtual void listens_no_more(std::uint32_t host, const abi::NetAddress& local) = 0;
  // A program on `host`, bound to `port`, connects to an outside address. `answered` is called with 0 or an errno when
  // the peer has answered. With 0, the callback makes a simulated connection to a listener of the outside host.
  virtual void connect(std::uint32_t host, std::uint16_t port, const abi::NetAddress& to,
                       std::function<void(int error)> answered) = 0;

  // --- Called by the run.
  virtual void watch(std::vector<pollfd>& watched) const = 0;  // adds the descriptors to wait for
  // Moves pending bytes in both directions, at the present simulated time. Does not block.
  virtual void work() = 0;
  // True: bytes that programs wrote have not left yet.
  virtual bool has_outstanding() const = 0;
  virtual std::vector<std::string> report() const = 0;  // for the summary
};

}  // namespace rnicsim::sim
