// SPDX-License-Identifier: Apache-2.0
// Stops and continuations within the simulation: a stopped process gets no turn. Its real process is not stopped; only
// a signal from outside, such as a terminal's ^Z, stops a real process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>

#include "sim/attached/time/thread_scheduler.h"

namespace rnicsim::sim {

class Stops {
 public:
  explicit Stops(ThreadScheduler& threads) : threads_(threads) {}
  // Called when the process was stopped by `signal`, or, with SIGCONT, continues.
  std::function<void(Process&, int signal)> on_change;

  void stop(Process& process, std::uint32_t signal);
  void go_on(Process& process);
  static void drop_pending(Process& process, SignalSet set);
  bool in_orphaned_group(const Process& process) const;
  static bool held_together(const Process& one, pid_t group, pid_t session);

 private:
  ThreadScheduler& threads_;
};

}  // namespace rnicsim::sim
