// rnicsim device: NICs of a simulated system, each in a virtual machine of this machine. It lives until it is told to
// end (SIGINT, SIGTERM, a limit), whatever machines come and go.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/guest/guest_client.h"
#include "sim/guest/guest_port.h"
#include "sim/guest/pace.h"
#include "sim/guest/path_socket.h"
#include "sim/snapshot_server.h"
#include "sim/watch.h"

namespace rnicsim::sim {

class System;

enum class GuestProtocol { qemu, vfio_user };

struct GuestSocket {
  std::uint32_t host = 0;      // of the topology
  GuestProtocol protocol{};
  std::string path;            // where we listen
  std::string qtest_path;      // of QEMU's x-pci-proxy-dev: where that listens for interrupts; empty: nowhere
};

class DeviceServer {
 public:
  // To be made before the simulation starts: the hosts are guests of the system. ConfigError: a socket.
  DeviceServer(System& system, const std::vector<GuestSocket>& sockets, const Limits& limits, bool once);
  ~DeviceServer();

  // The exit status. `warnings()` are for the summary.
  int serve();
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Guest;

  bool ended();
  void take_clients(Guest& guest);
  void serve_client(Guest& guest);
  void lose_client(Guest& guest, const std::string& why);
  void wait(std::optional<std::chrono::nanoseconds> longest);
  void end_for(const Watch::End& end);
  void tell_outside();
  std::string state() const;

  System& system_;
  const bool once_;
  Watch watch_;
  SnapshotServer snapshots_;
  Pace pace_;
  std::vector<std::unique_ptr<Guest>> guests_;
  std::vector<pollfd> watched_;
  std::vector<std::string> warnings_;
  int status_ = 0;
  bool ending_ = false;
  bool had_clients_ = false;
};

}  // namespace rnicsim::sim
