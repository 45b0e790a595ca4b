// The world at the other end of a live wire, as a run and its out-of-band network see it (docs/live-wire.md). A host of
// the topology that is outside runs no programs of the simulation; its address leads out.
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

  // --- Of the network.
  virtual void join(Network& network) = 0;
  virtual bool has(std::uint32_t host) const = 0;
  // A program on `host` listens at `local`, or does so no more.
  virtual void listens(std::uint32_t host, const abi::NetAddress& local, bool v6_only) = 0;
  virtual void listens_no_more(std::uint32_t host, const abi::NetAddress& local) = 0;
  // A program on `host`, bound to `port`, connects to an address outside. `answered` runs when the peer has answered:
  // 0, or errno. On 0, it makes the connection within the simulation, to a listener of the outside host.
  virtual void connect(std::uint32_t host, std::uint16_t port, const abi::NetAddress& to,
                       std::function<void(int error)> answered) = 0;

  // --- Of the run.
  virtual void watch(std::vector<pollfd>& watched) const = 0;  // what to wait for
  // Moves what has come and what waits, at the present simulated time. Does not wait.
  virtual void work() = 0;
  // Some of the bytes that programs wrote have not reached the world yet.
  virtual bool owes() const = 0;
  virtual std::vector<std::string> report() const = 0;  // for the summary
};

}  // namespace rnicsim::sim
