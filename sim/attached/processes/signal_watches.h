// SPDX-License-Identifier: Apache-2.0
// signalfds: the descriptor of a signalfd is readable while a signal of its set is pending.
#pragma once

#include <functional>

#include "sim/attached/processes/shared_numbers.h"
#include "sim/attached/programs.h"
#include "sim/attached/time/thread_scheduler.h"

namespace rnicsim::sim {

class SignalWatches {
 public:
  SignalWatches(ThreadScheduler& threads, Programs& programs, SharedNumbers& numbers)
      : threads_(threads), programs_(programs), numbers_(numbers) {}
  // True: no descriptor is left for one more object of the program.
  std::function<bool(const Process&, const char* what)> lacks_descriptors;

  bool watch(Thread& thread, abi::ThreadSlot& slot);
  void show(Process& process, SignalSet waiting);
  SignalSet outside_signals(const Thread& thread) const;
  bool hears_from_outside(Thread& thread);

 private:
  ThreadScheduler& threads_;
  Programs& programs_;
  SharedNumbers& numbers_;
};

}  // namespace rnicsim::sim
