// SPDX-License-Identifier: Apache-2.0
// Sockets whose messages differ from the bytes on the descriptor: UDP and netlink.
#pragma once

#include <sys/socket.h>

#include <optional>

#include "sim/host/kernel/files/known_descriptors.h"

namespace rnicsim::clock {

std::optional<KnownDescriptor> find_message_socket(int fd);

// Return what sendmsg(2) and recvmsg(2) return; -1 with errno.
ssize_t send_whole_message(int fd, const KnownDescriptor& socket, const msghdr& message, int flags);
ssize_t receive_whole_message(int fd, const KnownDescriptor& socket, msghdr& message, int flags);

}  // namespace rnicsim::clock
