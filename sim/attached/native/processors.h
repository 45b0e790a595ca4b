// SPDX-License-Identifier: Apache-2.0
// Placement of the simulator and its programs on this machine's processors. Only one of their threads runs at a time.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>

#include "model/abi/attach.h"
#include "sim/attached/native/contention.h"

namespace rnicsim::sim {

// Processors that the calling thread may use.
abi::ProcessorSet own_processors();

// Decides whether the simulator and its programs share one processor. Shared: the turn passes by a context switch.
// Apart: a sleeping thread is woken on an idle processor, which takes ten times as long, but the simulator can wait
// busily for a thread that returns soon, and can inspect a thread that does not return without taking its processor.
class Companionship {
 public:
  void turn_of_another() { weigh(kAnother); }
  // `later`: time since the thread's last turn began. Apart, two processors are in use for that time. Together it is
  // one, plus two context switches. A second of waiting counts as a second of processor time.
  void turn_of_the_same(std::chrono::microseconds later) {
    const auto gain = (later.count() - kWorthWaiting) / kUnit;
    weigh(int(std::clamp<std::int64_t>(gain, -kAnother, kAnother)));
  }
  void looked() { weigh(-kLook); }
  bool together() const { return together_; }

 private:
  static constexpr std::int64_t kWorthWaiting = 13;  // us
  static constexpr std::int64_t kUnit = 3;           // us; unit of the weights below
  static constexpr int kAnother = 8;
  static constexpr int kLook = 64;
  static constexpr int kDecided = 512;
  void weigh(int gain);

  int gain_ = 0;
  bool together_ = false;
};

class Processors {
 public:
  explicit Processors(Contention contention = Contention());
  // True: the simulator may wait busily, since the program's thread has a processor of its own.
  bool apart() const { return several_ && !together(); }

  // Called before a thread gets its turn.
  void place(pid_t thread);
  // For one turn of a thread that set its affinity: CPUID returns the number of the real processor and cannot be made
  // to fault on every machine, and hwloc reads it on each processor in turn.
  void place_within(pid_t thread, const abi::ProcessorSet& set);
  // turn_began(): a thread has the turn; `of_another`: another thread had the last one. looked(): the thread did not
  // return, and the simulator had to inspect it.
  void turn_began(bool of_another, std::chrono::steady_clock::time_point now);
  void looked();
  // Around a sleep of the simulator. From time to time the simulator may wake on another processor, and the programs
  // follow: another process may use the old one.
  void before_sleep();
  void after_sleep();

 private:
  // Under contention, busy waits would take processors that other programs need.
  bool together() const { return companionship_.together() || contention_.present(); }
  void follow(bool were_together);
  void settle();

  const abi::ProcessorSet all_ = own_processors();
  const bool several_;
  Companionship companionship_;
  Contention contention_;
  abi::ProcessorSet home_;
  std::set<pid_t> placed_;  // threads placed since the last change
  std::chrono::steady_clock::time_point settled_, turn_began_;
  bool floats_ = false;
};

}  // namespace rnicsim::sim
