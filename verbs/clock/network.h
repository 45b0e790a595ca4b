// The simulated out-of-band network: TCP sockets between simulated hosts. A program's descriptor is one end of a real
// stream whose other end the simulator holds.
#pragma once

namespace rnicsim::clock {

// A socket of the simulated network.
bool is_stream(int fd);

}  // namespace rnicsim::clock
