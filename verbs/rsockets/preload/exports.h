// The edge of librspreload.so.
#pragma once

#include "verbs/rsockets/preload/descriptors.h"
#include "verbs/rsockets/preload/next_calls.h"

// What librspreload.map exports.
#define RNICSIM_EXPORT extern "C"

namespace rnicsim::rsockets::preload {

// While a thread is in a call of rsocket.h, the sockets and descriptors that it uses are ordinary ones.
class Inside {
 public:
  Inside() { ++depth; }
  ~Inside() { --depth; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool now() { return depth != 0; }

 private:
  static thread_local int depth;
};

// The one call or the other, by what is behind the descriptor.
template <class Rsocket, class Ordinary>
auto choose(int fd, Rsocket&& rsocket, Ordinary&& ordinary) {
  const Behind target = Inside::now() ? Behind{Kind::ordinary, fd} : behind(fd);
  if (target.kind == Kind::ordinary) return ordinary(target.fd);
  const Inside inside;
  return rsocket(target.fd);
}

}  // namespace rnicsim::rsockets::preload
