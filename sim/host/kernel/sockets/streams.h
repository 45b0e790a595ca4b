// SPDX-License-Identifier: Apache-2.0
// The C library's streams (stdio).
#pragma once

namespace rnicsim::clock {

// Streams wait for pipes and sockets as read() and write() do. Call once in each image.
void take_streams();

}  // namespace rnicsim::clock
