// A loop of looks (timed_look.h), followed step by step: does it come round to the same state? Then it waits, and the
// time of each of its looks is known as long as they find nothing.
#pragma once

#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/abi/attach.h"
#include "verbs/clock/cpu_state.h"
#include "verbs/clock/instruction.h"
#include "verbs/clock/written_memory.h"

namespace rnicsim::clock {

class TimedLoop {
 public:
  // Of the calling thread, made at its first use; nullptr: there is no memory for it.
  static TimedLoop* of_thread();
  static void release_of_thread();  // when the thread ends

  void begin(int most_looks) { begin(std::size_t(most_looks), kFirstKept); }
  // After a loop that came round: does it come round once more, to the state in which it begins now?
  void begin_again() { begin(looks_, looks_); }
  int looked() const { return int(looked_); }

  // The thread is about to make a look, in this state.
  enum class Entered { on_the_way, came_round, too_long };
  Entered enter(const ucontext_t& context, WrittenMemory& written, const abi::ThreadSlot& slot);
  // The look ended, and found nothing.
  void looked(std::uint64_t now) { look_[looks_ - 1].times.ends = now - began_; }
  // What the next instruction reads.
  void note_reads(const Instruction& instruction, const ucontext_t& context);

  // A loop that came round: for the simulator, in the slot's input.
  struct Round {
    std::uint64_t began, period, looks, pages, changes;
  };
  Round describe(abi::ThreadSlot& slot) const;
  // The thread is about to make that look of the round.
  void continue_at(std::size_t look, const WrittenMemory& written, ucontext_t& context) const;

 private:
  // Brent's way to find a cycle (spin.cpp): the state to compare with is kept anew after so many looks.
  static constexpr std::size_t kFirstKept = 4;

  struct Look {
    CpuState state;
    abi::LoopLook times;
    std::size_t written;  // words so far in the round
    std::array<std::uint64_t, WrittenMemory::kMostWords> values;
  };

  void begin(std::size_t most_looks, std::size_t keeps) {
    most_looks_ = most_looks;
    keeps_ = keeps;
    looks_ = looked_ = pages_ = 0;
  }
  void note_page(std::uint64_t address);

  std::array<Look, abi::kMostLoopLooks> look_;  // since the state that was kept
  std::size_t looks_ = 0;
  std::size_t looked_ = 0;     // since the beginning
  std::size_t most_looks_ = 0;
  std::size_t keeps_ = kFirstKept;
  std::uint64_t began_ = 0;    // the first of them
  std::uint64_t changes_ = 0;  // as of then
  std::array<std::uint64_t, abi::kMostLoopPages> page_;
  std::size_t pages_ = 0;      // kMostLoopPages + 1: too many to name
};

}  // namespace rnicsim::clock
