// SPDX-License-Identifier: Apache-2.0
// The error of a system call as an exception.
#pragma once

#include <cerrno>
#include <system_error>

namespace rnicsim::sim {

// Throws std::system_error with errno; `action`: the call or the work that failed.
[[noreturn]] inline void throw_errno(const char* action) {
  throw std::system_error(errno, std::generic_category(), action);
}

}  // namespace rnicsim::sim
