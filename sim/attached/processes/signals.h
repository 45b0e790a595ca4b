// SPDX-License-Identifier: Apache-2.0
// Choice of the thread that takes a signal, and of the time. The thread raises the signal in itself in its own turn; a
// signal that all threads block waits here.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/attached/processes/signal_watches.h"
#include "sim/attached/programs.h"
#include "sim/attached/time/stops.h"
#include "sim/attached/time/thread_scheduler.h"

namespace rnicsim::sim {

class Signals {
 public:
  // `simulated`: false in real time, where the real kernel delivers all signals.
  Signals(ThreadScheduler& threads, Programs& programs, Stops& stops, SignalWatches& watches, bool simulated)
      : threads_(threads), programs_(programs), stops_(stops), watches_(watches), simulated_(simulated) {}

  // Sends a signal to a process, or to the thread `only`, at the present simulated time. False: the queue of pending
  // signals is full.
  bool raise(Process& process, const abi::SignalRecord& signal, Thread* only = nullptr);
  static Thread* thread_numbered(Process& process, std::uint32_t virtual_tid);  // nullptr: no such thread
  // Sends SIGHUP and SIGCONT to stopped processes that `dead` leaves orphaned.
  void release_orphans(const Process& dead);

  // --- Calls and turns of threads.
  bool await_signal(Thread& thread, abi::ThreadSlot& slot, std::optional<Duration> until);
  bool take_signals(Thread& thread, const abi::ThreadSlot& slot);
  bool read_signals(Thread& thread, abi::ThreadSlot& slot);  // of a signalfd
  static void hand_over_signals(Thread& thread);

 private:
  void give(Thread& thread, const abi::SignalRecord& signal);
  void show_pending(Process& process);
  std::optional<abi::SignalRecord> take_pending(Thread& thread, SignalSet set);

  ThreadScheduler& threads_;
  Programs& programs_;
  Stops& stops_;
  SignalWatches& watches_;
  const bool simulated_;
};

}  // namespace rnicsim::sim
