// SPDX-License-Identifier: Apache-2.0
// `rnicsim run --wire`: hosts of the topology that are outside of the simulation, each at the end of a live wire.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "sim/attached/network/outside_world.h"
#include "sim/guest/wire/ip_stack.h"
#include "sim/guest/wire/tcp_gateway.h"
#include "sim/guest/wire/wire_choice.h"
#include "sim/guest/wire/wire_notices.h"
#include "sim/guest/wire/wire_port.h"

namespace rnicsim::sim {

class System;

class LiveWire : public OutsideWorld {
 public:
  // Construct before the simulation starts. The wires' hosts are outside of the system. `say` gets the notices about
  // the wires (nullptr: they go to standard error). ConfigError: a socket or an interface is not usable.
  LiveWire(System& system, const std::vector<WireChoice>& wires, const WireNotices::Say& say = nullptr);
  ~LiveWire() override;

  void join(Network& network) override { gateway_->join(network); }
  bool has(std::uint32_t host) const override;
  void listens(std::uint32_t host, const abi::NetAddress& local, bool v6_only) override;
  void listens_no_more(std::uint32_t host, const abi::NetAddress& local) override;
  void connect(std::uint32_t host, std::uint16_t port, const abi::NetAddress& to,
               std::function<void(int error)> answered) override;

  void watch(std::vector<pollfd>& watched) const override;
  void work() override;
  bool has_outstanding() const override;
  std::vector<std::string> report() const override;

 private:
  struct Wire;
  using Clock = std::chrono::steady_clock;

  void add_wire(const WireChoice& choice, const WireNotices::Say& say);
  void add_station(std::size_t adapter);

  System& system_;
  IpStack stack_;
  std::unique_ptr<TcpGateway> gateway_;
  std::vector<std::unique_ptr<Wire>> wires_;
  std::vector<pollfd> watched_;
  Clock::time_point worked_{};
};

}  // namespace rnicsim::sim
