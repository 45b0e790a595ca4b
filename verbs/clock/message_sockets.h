// Sockets whose messages are not just what the descriptor carries: those of UDP, and netlink's.
#pragma once

#include <sys/socket.h>

#include <optional>

#include "verbs/clock/known_descriptors.h"

namespace rnicsim::clock {

std::optional<KnownDescriptor> find_message_socket(int fd);

// As the calls of the C library: -1 and errno.
ssize_t send_whole_message(int fd, const KnownDescriptor& socket, const msghdr& message, int flags);
ssize_t receive_whole_message(int fd, const KnownDescriptor& socket, msghdr& message, int flags);

}  // namespace rnicsim::clock
