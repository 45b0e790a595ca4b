// SPDX-License-Identifier: Apache-2.0
// A guest: the port of a function, and a client while a virtual machine is connected.
#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/guest/transactor/guest_client.h"
#include "sim/guest/transactor/guest_port.h"
#include "sim/os/descriptor.h"

namespace rnicsim::sim {

class ServedGuest {
 public:
  // Construct before the simulation starts. `name`: SystemC name of the port.
  ServedGuest(const std::string& name, const GuestFunction& function) : port_(name.c_str(), function) {}

  GuestPort& port() { return port_; }
  bool is_connected() const { return client_ != nullptr; }

  // Resets the function, and gives the function to a client of this class.
  template <class Client, class... Arguments>
  void connect(Descriptor socket, Arguments&&... arguments) {
    port_.clear();
    client_ = std::make_unique<Client>(port_, std::move(socket), std::forward<Arguments>(arguments)...);
  }
  void disconnect() { client_.reset(); }

  // Adds the client's descriptors for poll().
  void watch(std::vector<pollfd>& watched) const;
  // Executes the client's requests. A client whose connection is lost is disconnected, and the function is reset.
  void serve();
  // The port's counters, as a line.
  std::string state() const;

 private:
  GuestPort port_;
  std::unique_ptr<GuestClient> client_;  // nullptr: no virtual machine is connected
};

}  // namespace rnicsim::sim
