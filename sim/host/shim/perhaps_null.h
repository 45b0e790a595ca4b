// SPDX-License-Identifier: Apache-2.0
// Arguments that a header of the C library declares as never null, but Linux accepts or refuses with EFAULT.
#pragma once

namespace rnicsim::clock {

// Hides the declaration from the compiler, which otherwise deletes checks for null.
template <class T>
T* perhaps_null(T* argument) {
  asm("" : "+r"(argument));
  return argument;
}

}  // namespace rnicsim::clock
