// SPDX-License-Identifier: Apache-2.0
// Records the words of memory that a stretch of instructions writes, to tell whether memory is again as at the
// beginning.
#pragma once

#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/host/shim/spin/instruction.h"

namespace rnicsim::clock {

class WrittenMemory {
 public:
  void clear() { count_ = 0; }
  bool empty() const { return count_ == 0; }
  // Records the words that the instruction, the next at `context`, will write. False: it cannot be followed.
  bool note(const Instruction& instruction, const ucontext_t& context);
  bool is_as_before() const;

  static constexpr std::size_t kMostWords = 128;
  // Stores the words' present values, in the order in which they were first written. Returns their number.
  std::size_t save(std::array<std::uint64_t, kMostWords>& values) const;
  // Restores saved values. Words that were first written after save() get the values from before that write.
  void restore(const std::array<std::uint64_t, kMostWords>& values, std::size_t saved) const;

 private:
  struct Word {
    std::uint64_t* address;
    std::uint64_t value;
  };
  bool remember(std::uint64_t address, std::size_t bytes);

  std::array<Word, kMostWords> words_;
  std::size_t count_ = 0;
};

}  // namespace rnicsim::clock
