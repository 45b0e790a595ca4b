// The edge of the C ABI: no exception passes it, and errno is left as the verbs manual pages promise.
#pragma once

#include <cerrno>
#include <new>
#include <utility>

namespace rnicsim::verbs {

// `body` returns 0 or a positive errno.
template <class Body>
int guarded(Body&& body) noexcept {
  try {
    const int error = std::forward<Body>(body)();
    if (error != 0) errno = error;
    return error;
  } catch (const std::bad_alloc&) {
    return errno = ENOMEM;
  } catch (...) {
    return errno = EIO;
  }
}

// For verbs that answer -1.
template <class Body>
int guarded_minus_one(Body&& body) noexcept {
  return guarded(std::forward<Body>(body)) == 0 ? 0 : -1;
}

// For verbs that answer an object: `body` fills it and returns 0 or a positive errno.
template <class Object, class Body>
Object* guarded_object(Body&& body) noexcept {
  Object* object = nullptr;
  return guarded([&] { return body(object); }) == 0 ? object : nullptr;
}

}  // namespace rnicsim::verbs
