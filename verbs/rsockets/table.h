// SPDX-License-Identifier: Apache-2.0
// Table of rsockets, by descriptor number.
#pragma once

#include "verbs/rsockets/socket.h"

namespace rnicsim::rsockets {

// nullptr: not an rsocket.
SocketRef find_socket(int fd);
void add_socket(SocketRef socket);
// Called before the descriptor is closed: another thread may get the number at once.
SocketRef take_socket(int fd);

}  // namespace rnicsim::rsockets
