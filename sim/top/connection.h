// SPDX-License-Identifier: Apache-2.0
// Client of SnapshotServer: finds the runs of this user, and requests snapshots from one.
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
  std::string command;  // command line
};
std::vector<RunningProcess> running_processes();

class Connection {
 public:
  explicit Connection(pid_t pid);  // ConfigError: this user has no run with this pid

  pid_t pid() const { return pid_; }
  int descriptor() const { return socket_.get(); }
  // Requests one snapshot.
  void ask();
  // Reads without waiting; nullopt: the snapshot is not complete yet. std::runtime_error: another version.
  std::optional<Snapshot> receive();
  bool has_ended() const { return ended_; }
  // ask() and receive(), waiting at most `most`; nullopt: no answer.
  std::optional<Snapshot> ask_and_wait(std::chrono::milliseconds most);

 private:
  const pid_t pid_;
  Descriptor socket_;
  std::string received_;
  bool ended_ = false;
};

}  // namespace rnicsim::sim::top
