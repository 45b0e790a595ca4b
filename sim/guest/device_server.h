// SPDX-License-Identifier: Apache-2.0
// The server of `rnicsim device`: gives NICs of a simulated system to virtual machines. The server ends at SIGINT, at
// SIGTERM or at a limit.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "sim/guest/transactor/function_server.h"
#include "sim/snapshot_server.h"
#include "sim/watch.h"

namespace rnicsim::sim {

class System;

struct ServedHost {
  std::uint32_t host = 0;  // index in the topology
  GuestSocket socket;
};

class DeviceServer {
 public:
  // Construct before the simulation starts. The hosts are guests of the system. ConfigError: a socket is not usable.
  DeviceServer(System& system, const std::vector<ServedHost>& served, const Limits& limits, bool once);

  // Returns the exit status; then `warnings()` belong into the summary.
  int serve();
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  void greet() const;
  bool ended();
  void end_for(const Watch::End& end);
  Duration limit() const;
  std::string state() const;

  System& system_;
  const std::vector<ServedHost> served_;
  const bool once_;
  Watch watch_;
  SnapshotServer snapshots_;
  FunctionServer server_;
  std::set<std::uint32_t> hosts_;
  std::vector<std::string> warnings_;
  int status_ = 0;
  bool ending_ = false;
};

}  // namespace rnicsim::sim
