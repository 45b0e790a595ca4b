// A guest of a simulated system: the port of its NIC, and a client while a virtual machine is connected.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/descriptor.h"
#include "sim/guest/guest_client.h"
#include "sim/guest/guest_port.h"

namespace rnicsim::sim {

class System;
struct Topology;

// ConfigError: the host has several NICs, and a guest is given one.
void refuse_second_nic(std::uint32_t host, const Topology& topology);

class ServedGuest {
 public:
  // Construct before the simulation starts. `host` is a guest of the system and has one NIC.
  ServedGuest(System& system, std::uint32_t host);

  std::uint32_t host() const { return host_; }
  const Adapter& adapter() const { return adapter_; }
  GuestPort& port() { return port_; }
  bool is_connected() const { return client_ != nullptr; }

  // Resets the device, and gives the device to a client of this class.
  template <class Client, class... Arguments>
  void connect(Descriptor socket, Arguments&&... arguments) {
    port_.clear();
    client_ = std::make_unique<Client>(port_, std::move(socket), std::forward<Arguments>(arguments)...);
  }
  void disconnect() { client_.reset(); }

  // Adds the client's descriptors for poll().
  void watch(std::vector<pollfd>& watched) const;
  // Executes the client's requests. A client whose connection is lost is disconnected, and the device is reset.
  void serve();
  // The port's counters and the NIC's queue pairs, as text.
  std::string state() const;

 private:
  const std::uint32_t host_;
  Adapter& adapter_;
  GuestPort port_;
  std::unique_ptr<GuestClient> client_;  // nullptr: none is connected
};

}  // namespace rnicsim::sim
