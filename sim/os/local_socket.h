// SPDX-License-Identifier: Apache-2.0
// Abstract Unix sockets. Any local user may listen at any name, so the peer's identity is asked of the kernel
// (SO_PEERCRED).
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <optional>
#include <string>
#include <vector>

#include "sim/os/descriptor.h"

namespace rnicsim::sim {

struct SocketAddress {
  sockaddr_un address{};
  socklen_t bytes = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// Address for a name without its leading NUL; nullopt: the name is empty or too long.
std::optional<SocketAddress> abstract_address(const std::string& name);
// Peer process, as it was when it connected or began to listen.
ucred peer_of(int socket);
bool is_own_user(const ucred& peer);

// Connects; on failure the descriptor is not open and errno says why. A listener that never accepts (it may be another
// user's) blocks the caller for at most one second.
Descriptor connect_to(const std::string& name, int type);
// Names in use that begin with `prefix`, without duplicates.
std::vector<std::string> socket_names(const std::string& prefix);

}  // namespace rnicsim::sim
