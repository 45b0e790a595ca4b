// SPDX-License-Identifier: Apache-2.0
// Options of netlink sockets.
#pragma once

#include <sys/socket.h>

#include "sim/host/kernel/files/known_descriptors.h"

namespace rnicsim::clock {

// Return what setsockopt(2) and getsockopt(2) return; -1 with errno.
int set_netlink_option(int fd, const KnownDescriptor& socket, int level, int name, const void* value, socklen_t length);
int get_netlink_option(int fd, const KnownDescriptor& socket, int level, int name, void* value, socklen_t* length);

}  // namespace rnicsim::clock
