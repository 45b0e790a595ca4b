// SPDX-License-Identifier: Apache-2.0
// Contention for this machine's processors: other programs use the processors that a busy wait would occupy.
#pragma once

#include <chrono>
#include <optional>

#include "sim/os/descriptor.h"

namespace rnicsim::sim {

class Contention {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `statistics`: file with the scheduler's statistics of a thread, as /proc/PID/schedstat: ns on a processor, ns of
  // waiting for a processor, number of time slices. A kernel without the file never reports contention.
  explicit Contention(const char* statistics = "/proc/thread-self/schedstat");

  // Called often while the thread waits busily. Threads that share one processor wait for each other, so nothing is
  // measured meanwhile: then shared() is called instead.
  void apart(Time now);
  void shared(Time now);
  bool present() const { return present_; }

 private:
  std::optional<std::chrono::nanoseconds> waited() const;

  Descriptor statistics_;
  bool present_ = false;
  bool measures_ = false;
  Time began_;  // of the measurement, or of the contention
  std::chrono::nanoseconds waited_{};
};

}  // namespace rnicsim::sim
