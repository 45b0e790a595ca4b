// Answers those who watch a run from outside, between two of its events and without ever waiting for them: an abstract
// socket of this user's, on which each line that asks is answered by one with a snapshot.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "sim/os/descriptor.h"
#include "sim/snapshot.h"

namespace rnicsim::sim {

// Name of the socket at which a process of this user's answers, without the leading NUL; and what to ask there.
std::string snapshot_socket(pid_t process);
inline constexpr char kSnapshotRequest[] = "snapshot\n";

class SnapshotServer {
 public:
  // `complete` adds what only the run knows.
  SnapshotServer(const System& system, std::function<void(Snapshot&)> complete);
  // To be called now and then, as signals are looked for. Costs next to nothing while nobody watches.
  void serve();

 private:
  struct Viewer {
    Descriptor socket;
    std::string request;
    std::string answer;  // what is left of it to send
    std::chrono::steady_clock::time_point heard;
    bool wants = false;
  };

  void accept_viewers();
  static bool hear(Viewer& viewer);  // false: it is gone, or says what makes no sense
  bool answer(Viewer& viewer);
  const std::string& present_text();

  const System& system_;
  const std::function<void(Snapshot&)> complete_;
  Descriptor listener_;  // not open: somebody has the name; nobody will watch
  std::vector<Viewer> viewers_;
  std::string text_;  // the last one
  std::chrono::steady_clock::time_point taken_{};
};

}  // namespace rnicsim::sim
