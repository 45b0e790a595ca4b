// SPDX-License-Identifier: Apache-2.0
// Exported functions of librspreload.so, and the choice between rsockets and ordinary sockets.
#pragma once

#include "verbs/rsockets/preload/descriptors.h"
#include "verbs/rsockets/preload/next_calls.h"

// Marks the functions that librspreload.map exports.
#define RNICSIM_EXPORT extern "C"

namespace rnicsim::rsockets::preload {

// Set during a call of <rdma/rsocket.h>: sockets and descriptors that the library itself uses are ordinary ones.
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

// Calls `rsocket` or `ordinary`, depending on the target of the descriptor.
template <class Rsocket, class Ordinary>
auto choose(int fd, Rsocket&& rsocket, Ordinary&& ordinary) {
  const Behind target = Inside::now() ? Behind{Kind::ordinary, fd} : behind(fd);
  if (target.kind == Kind::ordinary) return ordinary(target.fd);
  const Inside inside;
  return rsocket(target.fd);
}

}  // namespace rnicsim::rsockets::preload
