// The edge of the C ABI: no exception passes it, and errno is left as the verbs manual pages promise. What unwinds a
// thread that is cancelled while it waits for an event does pass.
#pragma once

#include <bits/cxxabi_forced.h>  // <cxxabi.h> calls a namespace of its own abi

#include <cerrno>
#include <new>
#include <utility>

namespace rnicsim::verbs {

// `body` returns 0 or a positive errno.
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

// For verbs that answer -1.
template <class Body>
int guarded_minus_one(Body&& body) {
  return guarded(std::forward<Body>(body)) == 0 ? 0 : -1;
}

// For verbs that answer an object: `body` fills it and returns 0 or a positive errno.
template <class Object, class Body>
Object* guarded_object(Body&& body) {
  Object* object = nullptr;
  return guarded([&] { return body(object); }) == 0 ? object : nullptr;
}

}  // namespace rnicsim::verbs
