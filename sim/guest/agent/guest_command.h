// SPDX-License-Identifier: Apache-2.0
// A command of the launcher in a guest: a shell, the processes that it starts, and their output.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/guest/agent/frames.h"
#include "sim/os/descriptor.h"

namespace rnicsim::sim {

class GuestCommand {
 public:
  using Tell = std::function<void(FrameKind, std::uint32_t command, std::string_view payload)>;

  // Starts the command. std::system_error: the system refused a pipe or a process.
  GuestCommand(std::uint32_t number, const std::string& line, const Tell& tell);

  std::uint32_t number() const { return number_; }
  pid_t pid() const { return pid_; }
  // Sends the exit status, after all output that is in the pipes now.
  void end(int wait_status);
  bool has_ended() const { return ended_; }
  // The command has ended, and no process has its output pipes open.
  bool is_over() const { return ended_ && !output_ && !errors_; }
  // Sends the signal to the command's processes.
  void signal(int number) const;

  void add_to(std::vector<pollfd>& watched) const;
  // Sends the bytes that are available on one of the command's descriptors.
  void relay(int descriptor);
  // Sends `settled` once, when all processes of the command have slept for a while.
  void look_whether_settled(std::chrono::steady_clock::time_point now);
  bool is_settled() const { return settled_ || ended_; }

 private:
  // True: end of the output.
  bool relay_some(const Descriptor& from, FrameKind kind);
  void relay_what_is_there(Descriptor& from, FrameKind kind);

  const std::uint32_t number_;
  const Tell& tell_;
  pid_t pid_ = 0;
  Descriptor output_, errors_;
  bool ended_ = false;
  bool settled_ = false;
  std::optional<std::chrono::steady_clock::time_point> asleep_since_;
};

}  // namespace rnicsim::sim
