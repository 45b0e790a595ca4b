// The server of `rnicsim device`: gives NICs of a simulated system to virtual machines. Virtual machines may connect
// and disconnect; the server ends at SIGINT, at SIGTERM or at a limit.
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
  std::string path;            // the socket at which the server listens
  std::string qtest_path;      // the socket at which QEMU 7.2 listens (-qtest); empty: none, interrupts are lost
};

class DeviceServer {
 public:
  // Construct before the simulation starts. The hosts are guests of the system. ConfigError: a socket is not usable.
  DeviceServer(System& system, const std::vector<GuestSocket>& sockets, const Limits& limits, bool once);
  ~DeviceServer();

  // Returns the exit status; then `warnings()` belong into the summary.
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
