// What a stretch of instructions writes to memory: enough to tell whether memory is again as it was at its beginning.
#pragma once

#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "verbs/clock/instruction.h"

namespace rnicsim::clock {

class WrittenMemory {
 public:
  void clear() { count_ = 0; }
  bool empty() const { return count_ == 0; }
  // Remembers the words that the instruction, next at `context`, will write. False: it cannot be followed.
  bool note(const Instruction& instruction, const ucontext_t& context);
  bool is_as_before() const;

  static constexpr std::size_t kMostWords = 128;
  // What the words hold now, in the order in which they were first written; how many there are.
  std::size_t save(std::array<std::uint64_t, kMostWords>& values) const;
  // As when they were saved: words that were first written later hold what they did before.
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
