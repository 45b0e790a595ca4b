// On which of this machine's processors the simulator and its programs run. Only one of their threads does at a time.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>

#include "model/abi/attach.h"

namespace rnicsim::sim {

// Those that the calling thread may use.
abi::ProcessorSet own_processors();

// Whether all of them are better off on one processor. There the turn changes hands in a change of context. With two, a
// thread that has been asleep is woken on an idle one, which takes ten times as long; but one that soon comes back may
// be waited for busily, and one that does not come back is looked at without taking its processor away.
class Companionship {
 public:
  void turn_of_another() { weigh(kAnother); }
  // So long after its last one began. Apart, two processors are taken as long as it takes; together, one is, and two
  // changes of context are longer. A second of waiting counts as a second of a processor.
  void turn_of_the_same(std::chrono::microseconds later) {
    const auto gain = (later.count() - kWorthWaiting) / kUnit;
    weigh(int(std::clamp<std::int64_t>(gain, -kAnother, kAnother)));
  }
  void looked() { weigh(-kLook); }
  bool together() const { return together_; }

 private:
  static constexpr std::int64_t kWorthWaiting = 13;  // us
  static constexpr std::int64_t kUnit = 3;           // us; of those below
  static constexpr int kAnother = 8;
  static constexpr int kLook = 64;
  static constexpr int kDecided = 512;
  void weigh(int gain);

  int gain_ = 0;
  bool together_ = false;
};

class Processors {
 public:
  Processors();
  // The simulator may wait busily: the thread for which it waits has another one.
  bool apart() const { return several_ && !companionship_.together(); }

  // A thread is about to get its turn.
  void place(pid_t thread);
  // Where it asked to be, for that turn: CPUID tells the processor's own number, and cannot be made to fault everywhere
  // (hwloc asks each of them).
  void place_within(pid_t thread, const abi::ProcessorSet& set);
  // It has it, and had the last one or not; and it did not come back, but has to be looked at.
  void turn_began(bool of_another, std::chrono::steady_clock::time_point now);
  void looked();
  // The simulator sleeps in between. Now and then it may wake elsewhere, and takes the others there: another process
  // may have come to where it was.
  void before_sleep();
  void after_sleep();

 private:
  void follow(bool were_together);
  void settle();

  const abi::ProcessorSet all_ = own_processors();
  const bool several_;
  Companionship companionship_;
  abi::ProcessorSet home_;
  std::set<pid_t> placed_;         // threads, since the last change
  std::chrono::steady_clock::time_point settled_, turn_began_;
  bool floats_ = false;
};

}  // namespace rnicsim::sim
