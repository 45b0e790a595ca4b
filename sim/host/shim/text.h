// SPDX-License-Identifier: Apache-2.0
// Changes of the program's machine code.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

#include "sim/host/shim/raw_call.h"

namespace rnicsim::clock {

inline constexpr std::uintptr_t kPageBytes = 4096;

// True: the code comes from a file. A program may itself change code that it generates while it runs.
inline bool is_of_a_file(std::uintptr_t place) {
  dl_find_object object;
  return ::_dl_find_object(reinterpret_cast<void*>(place), &object) == 0;
}

// Makes the pages writable, in this process alone. False: the system does not allow it.
inline bool make_writable(std::uintptr_t place, std::size_t bytes) {
  constexpr int kAll = PROT_READ | PROT_WRITE | PROT_EXEC;
  const std::uintptr_t first = place & ~(kPageBytes - 1);
  return raw_call(SYS_mprotect, first, place + bytes - first, kAll) == 0;
}

}  // namespace rnicsim::clock
