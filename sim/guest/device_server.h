// The server of `rnicsim device`: gives NICs of a simulated system to virtual machines. Virtual machines may connect
// and disconnect; the server ends at SIGINT, at SIGTERM or at a limit.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sim/guest/guest_loop.h"
#include "sim/guest/path_socket.h"
#include "sim/watch.h"

namespace rnicsim::sim {

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

  // Returns the exit status; then `warnings()` belong into the summary.
  int serve();
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  // A socket, and the guest that connects to it.
  struct Place {
    const GuestSocket socket;
    const PathListener listener;
    ServedGuest& guest;
  };

  bool ended();
  void take_client(Place& place);
  void end_for(const Watch::End& end);
  Duration limit() const;

  const bool once_;
  Watch watch_;
  GuestLoop loop_;
  std::vector<std::unique_ptr<Place>> places_;
  std::vector<pollfd> listening_;
  std::vector<std::string> warnings_;
  int status_ = 0;
  bool ending_ = false;
  bool had_clients_ = false;
};

}  // namespace rnicsim::sim
