// The other end of SnapshotServer: finds the runs of this user, and asks one.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "sim/os/descriptor.h"
#include "sim/snapshot.h"

namespace rnicsim::sim::top {

struct RunningProcess {
  pid_t pid;
  std::string command;  // line
};
std::vector<RunningProcess> running_processes();

class Connection {
 public:
  explicit Connection(pid_t pid);  // ConfigError: no run of this user's has that number

  pid_t pid() const { return pid_; }
  int descriptor() const { return socket_.get(); }
  // Once for each snapshot.
  void ask();
  // What has come, without waiting; nullopt: not all of it. std::runtime_error: it is of another version.
  std::optional<Snapshot> receive();
  bool has_ended() const { return ended_; }
  // Both, for so long at most.
  std::optional<Snapshot> ask_and_wait(std::chrono::milliseconds most);

 private:
  const pid_t pid_;
  Descriptor socket_;
  std::string received_;
  bool ended_ = false;
};

}  // namespace rnicsim::sim::top
