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

 private:
  struct Word {
    const std::uint64_t* address;
    std::uint64_t value;
  };
  bool remember(std::uint64_t address, std::size_t bytes);

  std::array<Word, 64> words_;
  std::size_t count_ = 0;
};

}  // namespace rnicsim::clock
