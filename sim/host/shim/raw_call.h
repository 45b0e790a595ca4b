// SPDX-License-Identifier: Apache-2.0
// System calls to the real kernel. This library calls the C library's syscall(), because its own syscall() answers as
// the simulated host would, and a system call instruction of its own would raise SIGSYS (call_trap.h).
#pragma once

#include <errno.h>
#include <unistd.h>

#include <type_traits>

#include "sim/host/shim/next.h"

namespace rnicsim::clock {

inline constinit const Next<long(long, ...)> next_syscall{"syscall"};

template <class Value>
long word(Value value) {
  if constexpr (std::is_pointer_v<Value>) {
    return reinterpret_cast<long>(value);
  } else if constexpr (std::is_null_pointer_v<Value>) {
    return 0;
  } else {
    return long(value);
  }
}

// Returns what the C library returns: -1 with errno.
template <class... Arguments>
long checked_call(long number, Arguments... arguments) {
  static_assert(sizeof...(Arguments) <= 6);
  return next_syscall(number, word(arguments)...);
}

// Returns what the kernel returns: a negative errno for an error; errno stays.
template <class... Arguments>
long raw_call(long number, Arguments... arguments) {
  const int saved = errno;
  const long result = checked_call(number, arguments...);
  const int error = errno;
  errno = saved;
  return result == -1 ? -error : result;
}

}  // namespace rnicsim::clock
