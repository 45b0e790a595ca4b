// SPDX-License-Identifier: Apache-2.0
// Interface between the time keeper and real programs: threads get the turn and give it back.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "sim/attached/processes/pending_signals.h"
#include "sim/attached/processes/process.h"

namespace rnicsim::sim {

enum class TurnEnd {
  given_back,
  died,     // the process died
  blocked,  // in a real system call that the simulator does not know; the thread may return at any time
};

// Signal sets of a thread in the real kernel.
struct SignalMasks {
  SignalSet blocked = 0;
  SignalSet ignored = 0;  // by the program; signals that are ignored by default are not in the set
  SignalSet caught = 0;
  SignalSet waiting = 0;  // pending in the real kernel: sent from outside the simulation
};

class Programs {
 public:
  virtual ~Programs() = default;
  virtual void give_turn(Thread& thread) = 0;
  // Waits until the thread's turn ends. `meanwhile` is called from time to time with the real time waited so far; it
  // returns true when it read output of programs.
  using Meanwhile = std::function<bool(std::chrono::microseconds waited)>;
  virtual TurnEnd await_turn_end(Thread& thread, const Meanwhile& meanwhile) = 0;
  // The thread has given its turn away for good. Waits until its real thread has ended.
  virtual void await_thread_end(const Thread& thread) = 0;
  virtual SignalMasks signal_masks(const Thread& thread) const = 0;
  // Sends a signal to a thread that is blocked in the real kernel.
  virtual void interrupt(const Thread& thread, std::uint32_t signal) = 0;
  virtual bool has_ended(const Process& process) const = 0;
  // By a signal, for example of the terminal; SIGCONT lets the process run again.
  virtual bool is_stopped(const Thread& thread) const = 0;
  // Blocked in a real system call.
  virtual bool sleeps(const Thread& thread) const = 0;
  // Real processor time of all threads of the process.
  virtual std::chrono::microseconds processor_time(const Process& process) const = 0;
  // For people: "system call 202".
  virtual std::string activity(const Thread& thread) const = 0;
};

}  // namespace rnicsim::sim
