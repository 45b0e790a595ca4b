// SPDX-License-Identifier: Apache-2.0
// Errors of descriptors that do not block.
#pragma once

#include <cerrno>

namespace rnicsim::sim {

// True: the same call may succeed later.
inline bool is_transient(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace rnicsim::sim
