// SPDX-License-Identifier: Apache-2.0
// Programs in processes of their own. A thread gets the turn, and gives it back, by a futex in shared memory.
#pragma once

#include <cstdint>
#include <set>

#include "sim/attached/native/own_counter.h"
#include "sim/attached/native/processors.h"
#include "sim/attached/programs.h"

namespace rnicsim::sim {

class NativePrograms final : public Programs {
 public:
  NativePrograms();
  void give_turn(Thread& thread) override;
  TurnEnd await_turn_end(Thread& thread, const Meanwhile& meanwhile) override;
  void await_thread_end(const Thread& thread) override;
  SignalMasks signal_masks(const Thread& thread) const override;
  void interrupt(const Thread& thread, std::uint32_t signal) override;
  bool has_ended(const Process& process) const override { return process.has_exited(); }
  bool is_stopped(const Thread& thread) const override;
  bool sleeps(const Thread& thread) const override;
  std::chrono::microseconds processor_time(const Process& process) const override;
  std::string activity(const Thread& thread) const override;
  // Programs read the real time-stamp counter: the kernel refused its trap.
  bool read_real_counter() const { return own_counter_.is_refused(); }

 private:
  void ask(const Thread& thread, std::int64_t elapsed_us);
  bool is_blocked(const Thread& thread, std::int64_t elapsed_us, std::int64_t silent_us);
  TurnEnd sleep_until_end(Thread& thread, const Meanwhile& meanwhile);

  struct Turn {
    const Process* process = nullptr;  // Process objects stay; thread objects go at an exec
    std::uint32_t thread = 0;
    bool operator==(const Turn&) const = default;
  };
  Turn last_;
  bool of_another_ = false;  // the last turn belonged to another thread
  std::uint64_t turns_since_look_ = 0;
  OwnCounter own_counter_;
  Processors processors_;
  std::set<std::uint32_t> answering_;  // by real number: threads that have a handler for abi::kLookSignal
};

}  // namespace rnicsim::sim
