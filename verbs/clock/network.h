// The simulated out-of-band network: sockets of TCP and UDP between simulated hosts. A program's descriptor is one end
// of a real pair whose other end the simulator holds: of a stream, or of messages that begin with the peer's address
// (datagrams.h).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>

#include "model/abi/attach.h"
#include "verbs/clock/known_descriptors.h"

namespace rnicsim::clock {

// A socket of the simulated network.
std::optional<KnownDescriptor> find_socket(int fd);
bool is_stream(int fd);
// Why nothing comes or goes there, of a stream that has no other end: ENOTCONN or EPIPE. 0 of all others.
int refusal_of_stream(int fd, short events);

// After a write: the bytes carry the time at which they were written.
ssize_t settle_write(int fd, ssize_t result);
// What has befallen a stream, told once: ECONNRESET. 0: nothing.
int take_error(int fd);
// What a receive of `wanted` bytes answers that found so many: 0 may be the peer's end or, -1 and errno, a reset.
ssize_t settle_end(int fd, std::size_t wanted, ssize_t found);

// One that came from another image or process: it is known here from now on, if it is such a socket.
void know_inherited_socket(int fd);

// The slot of a thread that may make calls of the network; in real time it works, too: only the clock is real.
abi::ThreadSlot* network_slot();

// A socket whose first address lies outside of the simulated network: becomes a real one under the same number.
int make_real(int fd, const KnownDescriptor& socket);

}  // namespace rnicsim::clock
