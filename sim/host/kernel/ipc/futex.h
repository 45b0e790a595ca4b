// SPDX-License-Identifier: Apache-2.0
// futex(2) in simulated time: std::future, atomic waits of C++20, Rust's std::sync and others use it.
#pragma once

#include <time.h>

#include <cstdint>

#include "model/abi/attach.h"
#include "sim/host/kernel/ipc/addresses.h"

namespace rnicsim::clock {

struct FutexCall {
  std::uint32_t* word;
  int operation;
  std::uint32_t value;
  const timespec* timeout;  // a timeout, or with FUTEX_WAKE_OP a number: the most waiters to wake at second_word
  std::uint32_t* second_word;
  std::uint32_t third_value;
  Sharing sharing = Sharing::process;  // set by futex()
};

// Returns what syscall(SYS_futex, ...) returns; -1 with errno.
long futex(abi::ThreadSlot& slot, FutexCall call);

}  // namespace rnicsim::clock
