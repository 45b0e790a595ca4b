// SPDX-License-Identifier: Apache-2.0
// Netlink sockets. A program's descriptor is a UNIX datagram socket that is connected to itself: answers of the
// simulated kernel are written into its own queue. The name of the UNIX socket holds protocol and port. By this name
// every process recognizes the socket; no other socket can write to it, and no two sockets have the same port.
#pragma once

#include <sys/socket.h>

#include <optional>

#include "sim/host/kernel/files/known_descriptors.h"

namespace rnicsim::clock {

std::optional<KnownDescriptor> find_netlink(int fd);
// Registers a netlink socket that came from another image or process. False: not a netlink socket.
bool know_inherited_netlink(int fd);

// Return what the C library's functions for sockets return; -1 with errno.
int open_netlink(int type, int protocol);
int bind_netlink(int fd, const KnownDescriptor& socket, const sockaddr* address, socklen_t length);
int connect_netlink(int fd, const KnownDescriptor& socket, const sockaddr* address, socklen_t length);
int name_netlink(int fd, sockaddr* address, socklen_t* length);
int name_netlink_peer(sockaddr* address, socklen_t* length);
ssize_t send_netlink(int fd, const KnownDescriptor& socket, const msghdr& message, int flags);
ssize_t receive_netlink(int fd, const KnownDescriptor& socket, msghdr& message, int flags);

}  // namespace rnicsim::clock
