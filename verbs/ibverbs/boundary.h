// SPDX-License-Identifier: Apache-2.0
// Boundary of the C interface: no C++ exception passes it, and errno is set as the man pages say. The unwinding of a
// thread that is cancelled while it waits for an event passes.
#pragma once

#include <bits/cxxabi_forced.h>  // <cxxabi.h> defines a global namespace abi as well

#include <cerrno>
#include <new>
#include <utility>

namespace rnicsim::verbs {

// Runs `body`, which returns 0 or a positive errno. Sets errno on failure.
template <class Body>
int guarded(Body&& body) {
  try {
    const int error = std::forward<Body>(body)();
    if (error != 0) errno = error;
    return error;
  } catch (const std::bad_alloc&) {
    return errno = ENOMEM;
  } catch (const __cxxabiv1::__forced_unwind&) {
    throw;
  } catch (...) {
    return errno = EIO;
  }
}

// For verbs that return -1 on failure.
template <class Body>
int guarded_minus_one(Body&& body) {
  return guarded(std::forward<Body>(body)) == 0 ? 0 : -1;
}

// For verbs that return an object: `body` sets it and returns 0 or a positive errno. nullptr on failure.
template <class Object, class Body>
Object* guarded_object(Body&& body) {
  Object* object = nullptr;
  return guarded([&] { return body(object); }) == 0 ? object : nullptr;
}

}  // namespace rnicsim::verbs
