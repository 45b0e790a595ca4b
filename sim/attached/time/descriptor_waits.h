// SPDX-License-Identifier: Apache-2.0
// Waits of threads for descriptors.
#pragma once

#include <functional>
#include <optional>

#include "sim/attached/time/thread_scheduler.h"

namespace rnicsim::sim {

class DescriptorWaits {
 public:
  // Copies of watched descriptors have numbers below `watched_end`.
  DescriptorWaits(ThreadScheduler& threads, int watched_end) : threads_(threads), watched_end_(watched_end) {}
  // Called when a wait was refused for want of descriptors.
  std::function<void(const Process&)> on_refusal;

  bool wait(Thread& thread, abi::ThreadSlot& slot, std::optional<Duration> until);  // true: the call is answered
  void poll();                                                                      // wakes threads whose wait is over
  // Wait and wake-up for a pipe to which only the simulator writes.
  void await_pipe(Thread& thread, const Descriptor& pipe);
  void pipe_written(Process& process, const Descriptor& pipe);

 private:
  static bool is_ready(const WaitForDescriptors& wait);  // one of the descriptors

  ThreadScheduler& threads_;
  const int watched_end_;
};

}  // namespace rnicsim::sim
