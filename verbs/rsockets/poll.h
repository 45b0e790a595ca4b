// SPDX-License-Identifier: Apache-2.0
// poll and select over rsockets and ordinary descriptors together.
#pragma once

#include <poll.h>
#include <sys/select.h>

#include <span>

#include "verbs/rsockets/socket.h"

namespace rnicsim::rsockets {

Answer poll_descriptors(std::span<pollfd> descriptors, int timeout_ms);
Answer select_descriptors(int count, fd_set* read, fd_set* write, fd_set* except, const timeval* timeout);

}  // namespace rnicsim::rsockets
