// UDP of the simulated network. On the program's descriptor each message begins with a header, which the calls here put
// before what is sent and take from what comes.
#pragma once

#include <sys/socket.h>

#include <optional>

#include "verbs/clock/known_descriptors.h"

namespace rnicsim::clock {

// A socket of datagrams of the simulated network.
std::optional<KnownDescriptor> find_datagrams(int fd);

// As the calls of the C library: -1 and errno.
int bind_datagrams(int fd, const KnownDescriptor& socket, const sockaddr* address, socklen_t length);
int connect_datagrams(int fd, const KnownDescriptor& socket, const sockaddr* address, socklen_t length);
ssize_t send_datagram(int fd, const KnownDescriptor& socket, const msghdr& message, int flags);
ssize_t receive_datagram(int fd, const KnownDescriptor& socket, msghdr& message, int flags);
// Payload of the next one to be received; 0: there is none.
int next_datagram_bytes(int fd);

}  // namespace rnicsim::clock
