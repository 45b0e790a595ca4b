// SPDX-License-Identifier: Apache-2.0
// A connected pair of sockets: one end for this process, and one for a process that it starts.
#pragma once

#include "sim/os/descriptor.h"

namespace rnicsim::sim {

struct SocketEnds {
  Descriptor here;  // non-blocking
  Descriptor there;
};

// UNIX stream sockets, closed by exec(). std::system_error.
SocketEnds make_socket_ends();

}  // namespace rnicsim::sim
