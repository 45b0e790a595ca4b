// The C library's streams (stdio).
#pragma once

namespace rnicsim::clock {

// From now on they wait for pipes and sockets as read() and write() do. Once, of an image.
void take_streams();

}  // namespace rnicsim::clock
