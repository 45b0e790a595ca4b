// SPDX-License-Identifier: Apache-2.0
// Follows a loop of looks (timed_look.h) step by step. If the loop comes back to the same state, the thread waits: the
// time of each further look is known as long as the looks find nothing.
#pragma once

#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/abi/attach.h"
#include "sim/host/shim/spin/cpu_state.h"
#include "sim/host/shim/spin/instruction.h"
#include "sim/host/shim/spin/written_memory.h"

namespace rnicsim::clock {

class TimedLoop {
 public:
  // The calling thread's object, made at its first use; nullptr: no memory.
  static TimedLoop* of_thread();
  static void release_of_thread();  // when the thread ends

  void begin(int most_looks) { begin(std::size_t(most_looks), kFirstKept); }
  // Checks that a loop that came round comes round once more, to its present state.
  void begin_again() { begin(looks_, looks_); }
  int looked() const { return int(looked_); }

  // The thread is about to make a look in the state `context`.
  enum class Entered { on_the_way, came_round, too_long };
  Entered enter(const ucontext_t& context, WrittenMemory& written, const abi::ThreadSlot& slot);
  // The look ended, and found nothing.
  void looked(std::uint64_t now) { look_[looks_ - 1].times.ends = now - began_; }
  // Notes the pages that the next instruction reads.
  void note_reads(const Instruction& instruction, const ucontext_t& context);

  // A loop that came round, for Call::spin. describe() writes its looks and pages into the slot's input.
  struct Round {
    std::uint64_t began, period, looks, pages, changes;
  };
  Round describe(abi::ThreadSlot& slot) const;
  // Sets the thread to the state before look `look` of the round.
  void continue_at(std::size_t look, const WrittenMemory& written, ucontext_t& context) const;

 private:
  // Brent's algorithm finds the cycle (spin.cpp): the state to compare with is replaced after 4 looks, then after 8, 16
  // and so on.
  static constexpr std::size_t kFirstKept = 4;

  struct Look {
    CpuState state;
    abi::LoopLook times;
    std::size_t written;  // words written so far in the round
    std::array<std::uint64_t, WrittenMemory::kMostWords> values;
  };

  void begin(std::size_t most_looks, std::size_t keeps) {
    most_looks_ = most_looks;
    keeps_ = keeps;
    looks_ = looked_ = pages_ = 0;
  }
  void note_page(std::uint64_t address);

  std::array<Look, abi::kMostLoopLooks> look_;  // since the kept state
  std::size_t looks_ = 0;
  std::size_t looked_ = 0;  // since begin()
  std::size_t most_looks_ = 0;
  std::size_t keeps_ = kFirstKept;
  std::uint64_t began_ = 0;    // time of the first of look_, in ps
  std::uint64_t changes_ = 0;  // ThreadSlot::changes at that time
  std::array<std::uint64_t, abi::kMostLoopPages> page_;
  std::size_t pages_ = 0;  // kMostLoopPages + 1: more than can be named
};

}  // namespace rnicsim::clock
