// SPDX-License-Identifier: Apache-2.0
// Serves PCI functions of a SystemC model to virtual machines, at UNIX sockets: docs/bring-up.md. Virtual machines may
// connect and disconnect.
//
//   FunctionServer server;
//   server.add({"my_nic", nic.config, nic.bar, nic.dma, 1 << 20}, {GuestProtocol::vfio_user, "my_nic.sock"});
//   while (!ended) server.turn(std::chrono::milliseconds(100));
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "sim/guest/transactor/guest_loop.h"
#include "sim/guest/transactor/path_socket.h"

namespace rnicsim::sim {

enum class GuestProtocol { qemu, vfio_user };

struct GuestSocket {
  GuestProtocol protocol{};
  std::string path;        // the socket at which the server listens
  std::string qtest_path;  // the socket at which QEMU 7.2 listens (-qtest); empty: none, interrupts are lost
};

class FunctionServer {
 public:
  FunctionServer();

  // Before the simulation starts. ConfigError: the socket is not usable.
  GuestPort& add(const GuestFunction& function, const GuestSocket& socket);

  // Advances simulated time and executes the requests of the virtual machines, for `longest` at most.
  void turn(std::chrono::nanoseconds longest, Duration limit = Agenda::kNever);

  bool had_clients() const { return had_clients_; }
  bool has_clients() const;
  void disconnect();
  // A line for each function.
  std::string state() const;

 private:
  // A socket, and the guest that connects to the socket.
  struct Place {
    const GuestSocket socket;
    const PathListener listener;
    ServedGuest& guest;
  };

  void take_client(Place& place);

  GuestLoop loop_;
  std::vector<std::unique_ptr<Place>> places_;
  std::vector<pollfd> listening_;
  bool had_clients_ = false;
};

}  // namespace rnicsim::sim
