// SPDX-License-Identifier: Apache-2.0
// Sockets of the simulated out-of-band network: TCP and UDP between simulated hosts. A program's descriptor is one end
// of a real socket pair; the simulator holds the other end. TCP is a pair of streams; each message of UDP begins with a
// header (datagrams.h).
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>

#include "model/abi/attach.h"
#include "sim/host/kernel/files/known_descriptors.h"

namespace rnicsim::clock {

// nullopt: not a socket of the simulated network.
std::optional<KnownDescriptor> find_socket(int fd);
std::optional<KnownDescriptor> find_stream(int fd);
bool is_stream(int fd);

// The slot of a thread that may make network calls; nullptr: none. In real time there is one, too.
abi::ThreadSlot* network_slot();

// The address of one end of a socket, as getsockname(2) and getpeername(2) give it. Requires a network_slot().
enum class End { own, peer };
int name_of(const KnownDescriptor& socket, End end, sockaddr* address, socklen_t* length);

// Error of a TCP socket without a connection: ENOTCONN for reads, EPIPE for writes. 0: another descriptor.
int refusal_of_stream(int fd, short events);
// After a write to a TCP socket: the bytes leave at the thread's present time. Returns `result`.
ssize_t settle_write(int fd, ssize_t result);
// Pending error of a TCP connection, reported once: ECONNRESET. 0: none.
int take_error(int fd);
// Result of a receive of `wanted` bytes that found `found` bytes. 0 bytes are the peer's end, or a reset: -1 with
// errno.
ssize_t settle_end(int fd, std::size_t wanted, ssize_t found);

}  // namespace rnicsim::clock
