// Options of sockets of the simulated network.
#pragma once

namespace rnicsim::clock {

// What a program set on a socket that becomes a real one, or on a listener for its connections.
void copy_options(int from, int to);

// An option of SOL_SOCKET that a socket of messages cannot have.
bool is_refused(int name);

}  // namespace rnicsim::clock
