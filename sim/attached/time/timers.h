// SPDX-License-Identifier: Apache-2.0
// Timers of processes: each expires at its simulated time, by a signal or on a descriptor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "sim/attached/processes/shared_numbers.h"
#include "sim/attached/processes/signals.h"
#include "sim/attached/time/thread_scheduler.h"

namespace rnicsim::sim {

class Timers {
 public:
  Timers(ThreadScheduler& threads, Signals& signals, SharedNumbers& numbers)
      : threads_(threads), signals_(signals), numbers_(numbers) {}
  // True: no descriptor is left for one more object of the program.
  std::function<bool(const Process&, const char* what)> lacks_descriptors;

  // --- Calls. True: the call is answered.
  bool make(Thread& thread, abi::ThreadSlot& slot);
  bool set(Process& process, abi::ThreadSlot& slot);
  static bool get(Process& process, abi::ThreadSlot& slot);

  static std::optional<Duration> next_end(const Process& process);
  std::optional<Duration> next_end(std::uint32_t host) const;

 private:
  void start(Process& process, const std::shared_ptr<Timer>& timer);
  void expire(Process& process, const std::shared_ptr<Timer>& ended);

  ThreadScheduler& threads_;
  Signals& signals_;
  SharedNumbers& numbers_;
};

}  // namespace rnicsim::sim
