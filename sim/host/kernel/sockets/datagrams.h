// SPDX-License-Identifier: Apache-2.0
// UDP of the simulated network. Each message on the program's descriptor begins with a header (abi::DatagramHeader).
// These functions put the header before a message that is sent and remove it from one that is received.
#pragma once

#include <sys/socket.h>

#include <optional>

#include "sim/host/kernel/files/known_descriptors.h"

namespace rnicsim::clock {

// nullopt: not a UDP socket of the simulated network.
std::optional<KnownDescriptor> find_datagrams(int fd);

// Return what the C library's functions for sockets return; -1 with errno.
int bind_datagrams(int fd, const KnownDescriptor& socket, const sockaddr* address, socklen_t length);
int connect_datagrams(int fd, const KnownDescriptor& socket, const sockaddr* address, socklen_t length);
ssize_t send_datagram(int fd, const KnownDescriptor& socket, const msghdr& message, int flags);
ssize_t receive_datagram(int fd, const KnownDescriptor& socket, msghdr& message, int flags);
// Payload bytes of the next datagram to be received; 0: no datagram.
int next_datagram_bytes(int fd);

}  // namespace rnicsim::clock
