// SPDX-License-Identifier: Apache-2.0
// Turns failures of verbs into exceptions, for set-up code.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace rnicsim::sim::bench {

template <class Object>
Object* made(Object* object, const char* what) {
  if (!object) throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
  return object;
}
inline void must(int error, const char* what) {
  if (error != 0) throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(error)));
}

}  // namespace rnicsim::sim::bench
