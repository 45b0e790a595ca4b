// The real programs, as the time keeper meets them: they take the turn and give it back.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "sim/attached/pending_signals.h"
#include "sim/attached/process.h"

namespace rnicsim::sim {

enum class TurnEnd {
  given_back,
  died,     // with its process
  blocked,  // in the real kernel, in a call that the simulator does not know: it may come back at any time
};

// What a thread does with signals, in the real kernel's words.
struct SignalMasks {
  SignalSet blocked = 0;
  SignalSet ignored = 0;  // by the program, not by default
  SignalSet caught = 0;
  SignalSet waiting = 0;  // held back there: they came from outside the simulation
};

class Programs {
 public:
  virtual ~Programs() = default;
  virtual void give_turn(Thread& thread) = 0;
  // The thread that has the turn runs until it ends. `meanwhile` is called now and then, with the time waited so far;
  // true: it took in what programs wrote.
  using Meanwhile = std::function<bool(std::chrono::microseconds waited)>;
  virtual TurnEnd await_turn_end(Thread& thread, const Meanwhile& meanwhile) = 0;
  // The thread has given its turn away for good: what it still does, it does now.
  virtual void await_thread_end(const Thread& thread) = 0;
  virtual SignalMasks signal_masks(const Thread& thread) const = 0;
  // Sends a signal to a thread that is blocked in the real kernel.
  virtual void interrupt(const Thread& thread, std::uint32_t signal) = 0;
  virtual bool has_ended(const Process& process) const = 0;
  // By a signal, the terminal's perhaps: it goes on when another comes.
  virtual bool is_stopped(const Thread& thread) const = 0;
  // In the real kernel, which does not let it go on yet.
  virtual bool sleeps(const Thread& thread) const = 0;
  // Which its threads have had of the real processors.
  virtual std::chrono::microseconds processor_time(const Process& process) const = 0;
  // "system call 202", for people.
  virtual std::string activity(const Thread& thread) const = 0;
};

}  // namespace rnicsim::sim
