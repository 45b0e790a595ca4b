// Netlink sockets. A program's descriptor is a socket of UNIX datagrams that is connected to itself: what the host's
// kernel answers to a send is put into its own queue. Its name there holds its protocol and port, so that it is known
// in whatever process it comes to, nobody else can write to it, and no two have the same port.
#pragma once

#include <sys/socket.h>

#include <optional>

#include "verbs/clock/known_descriptors.h"

namespace rnicsim::clock {

std::optional<KnownDescriptor> find_netlink(int fd);
// One that came from another image or process is known here from now on. False: it is none.
bool know_inherited_netlink(int fd);

// As the calls of the C library: -1 and errno.
int open_netlink(int type, int protocol);
int bind_netlink(int fd, const KnownDescriptor& socket, const sockaddr* address, socklen_t length);
int connect_netlink(int fd, const KnownDescriptor& socket, const sockaddr* address, socklen_t length);
int name_netlink(int fd, sockaddr* address, socklen_t* length);
int name_netlink_peer(sockaddr* address, socklen_t* length);
ssize_t send_netlink(int fd, const KnownDescriptor& socket, const msghdr& message, int flags);
ssize_t receive_netlink(int fd, const KnownDescriptor& socket, msghdr& message, int flags);

}  // namespace rnicsim::clock
