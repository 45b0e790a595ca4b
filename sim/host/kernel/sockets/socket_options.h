// SPDX-License-Identifier: Apache-2.0
// Options of sockets of the simulated network.
#pragma once

namespace rnicsim::clock {

// Copies the options that a program set on a socket to the real socket that replaces it, or from a listener to a
// connection.
void copy_options(int from, int to);

}  // namespace rnicsim::clock
