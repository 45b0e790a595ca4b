// SPDX-License-Identifier: Apache-2.0
// Reads and writes the values of socket options.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace rnicsim::rsockets {

// Return 0, or EINVAL: the buffer is too short.
template <class Value>
int read_option(const void* bytes, socklen_t length, Value& value) {
  if (bytes == nullptr || length < sizeof value) return EINVAL;
  std::memcpy(&value, bytes, sizeof value);
  return 0;
}

template <class Value>
int write_option(const Value& value, void* bytes, socklen_t* length) {
  if (bytes == nullptr || length == nullptr || *length < sizeof value) return EINVAL;
  std::memcpy(bytes, &value, sizeof value);
  *length = sizeof value;
  return 0;
}

}  // namespace rnicsim::rsockets
