// SPDX-License-Identifier: Apache-2.0
// The C library's calls that open, connect, name, copy and close sockets and other descriptors.
#pragma once

namespace rnicsim::clock {

// Registers a TCP, UDP or netlink socket that came from another image or process.
void know_inherited_socket(int fd);

}  // namespace rnicsim::clock
