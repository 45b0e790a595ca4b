// The kernel's own system calls: what is ours must not pass through syscall(), which the preloaded library answers as
// the simulated host would, but through the C library's. An instruction of our own would raise SIGSYS (call_trap.h).
#pragma once

#include <errno.h>
#include <unistd.h>

#include <type_traits>

#include "verbs/clock/next.h"

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

// As the C library answers: -1 and errno.
template <class... Arguments>
long checked_call(long number, Arguments... arguments) {
  static_assert(sizeof...(Arguments) <= 6);
  return next_syscall(number, word(arguments)...);
}

// The kernel's own answer: a negative errno for an error; errno stays.
template <class... Arguments>
long raw_call(long number, Arguments... arguments) {
  const int saved = errno;
  const long result = checked_call(number, arguments...);
  const int error = errno;
  errno = saved;
  return result == -1 ? -error : result;
}

}  // namespace rnicsim::clock
