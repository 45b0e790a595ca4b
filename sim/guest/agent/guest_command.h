// A command of the launcher's in a guest: a shell, the processes that it starts, and what they print.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/descriptor.h"
#include "sim/guest/agent/frames.h"

namespace rnicsim::sim {

class GuestCommand {
 public:
  using Tell = std::function<void(FrameKind, std::uint32_t command, std::string_view payload)>;

  // Starts it. std::system_error: the system has no room for another process.
  GuestCommand(std::uint32_t number, const std::string& line, const Tell& tell);

  std::uint32_t number() const { return number_; }
  pid_t pid() const { return pid_; }
  // Tells how it ended, behind what it had printed until then.
  void end(int wait_status);
  bool has_ended() const { return ended_; }
  // It has ended, and nobody is left who could print.
  bool is_over() const { return ended_ && !output_ && !errors_; }
  // To its processes.
  void signal(int number) const;

  void add_to(std::vector<pollfd>& watched) const;
  // Tells what there is on one of its descriptors.
  void relay(int descriptor);
  // Tells once that its processes have slept since the last few looks.
  void look_whether_settled(std::chrono::steady_clock::time_point now);
  bool is_settled() const { return settled_ || ended_; }

 private:
  // True: that was the end.
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
