// Which descriptors are rsockets.
#pragma once

#include "verbs/rsockets/socket.h"

namespace rnicsim::rsockets {

// Nothing: this descriptor is none.
SocketRef find_socket(int fd);
void add_socket(SocketRef socket);
// Before its descriptor is closed: the number may be another's at once.
SocketRef take_socket(int fd);

}  // namespace rnicsim::rsockets
