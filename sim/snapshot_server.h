// SPDX-License-Identifier: Apache-2.0
// Answers viewers of a run (`rnicsim top`) between two events of the simulation, without ever blocking: an abstract
// socket of this user, where each request line is answered by one line with a snapshot.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "sim/os/descriptor.h"
#include "sim/snapshot.h"

namespace rnicsim::sim {

// Name, without the leading NUL, of the socket of this user's process; and the request.
std::string snapshot_socket(pid_t process);
inline constexpr char kSnapshotRequest[] = "snapshot\n";

class SnapshotServer {
 public:
  // `complete` adds the parts of a snapshot that only the run knows.
  SnapshotServer(const System& system, std::function<void(Snapshot&)> complete);
  // Call regularly, where signals are checked. Without viewers the call costs next to nothing.
  void serve();

 private:
  struct Viewer {
    Descriptor socket;
    std::string request;
    std::string answer;  // bytes not yet sent
    std::chrono::steady_clock::time_point heard;
    bool wants = false;
  };

  void accept_viewers();
  static bool hear(Viewer& viewer);  // false: the viewer is gone, or its request is not valid
  bool answer(Viewer& viewer);
  const std::string& present_text();

  const System& system_;
  const std::function<void(Snapshot&)> complete_;
  Descriptor listener_;  // not open: the name is taken, and no viewer can connect
  std::vector<Viewer> viewers_;
  std::string text_;  // last snapshot
  std::chrono::steady_clock::time_point taken_{};
  std::chrono::steady_clock::time_point served_{};  // when viewers were served last
};

}  // namespace rnicsim::sim
