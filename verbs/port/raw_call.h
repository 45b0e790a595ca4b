// System calls by instruction: what is ours must not pass through syscall(), which the preloaded library answers as the
// simulated host would.
#pragma once

#include <errno.h>

#include <type_traits>

namespace rnicsim {

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

// The kernel's own answer: a negative errno for an error.
template <class... Arguments>
long raw_call(long number, Arguments... arguments) {
  static_assert(sizeof...(Arguments) <= 6);
  const long all[6] = {word(arguments)...};
  register long r10 asm("r10") = all[3];
  register long r8 asm("r8") = all[4];
  register long r9 asm("r9") = all[5];
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(all[0]), "S"(all[1]), "d"(all[2]), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

// As the C library answers: -1 and errno.
template <class... Arguments>
long checked_call(long number, Arguments... arguments) {
  const long result = raw_call(number, arguments...);
  if (result >= 0 || result < -4095) return result;
  errno = int(-result);
  return -1;
}

}  // namespace rnicsim
