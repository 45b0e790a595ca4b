// futex(2) in simulated time: what std::future, C++20's atomic waits, Rust's std::sync and others are built on.
#pragma once

#include <time.h>

#include <cstdint>

#include "model/abi/attach.h"
#include "verbs/clock/addresses.h"

namespace rnicsim::clock {

struct FutexCall {
  std::uint32_t* word;
  int operation;
  std::uint32_t value;
  const timespec* timeout;  // a number for the operations that wake two addresses
  std::uint32_t* second_word;
  std::uint32_t third_value;
  Sharing sharing = Sharing::process;  // found out
};

// As syscall(SYS_futex, ...): -1 and errno.
long futex(abi::ThreadSlot& slot, FutexCall call);

}  // namespace rnicsim::clock
