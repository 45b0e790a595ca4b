// Abstract sockets of this machine. Any local user may listen at any name: who is at the other end is asked of the
// kernel (SO_PEERCRED).
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

// Of a name without its leading NUL; nullopt: the name is empty or too long.
std::optional<SocketAddress> abstract_address(const std::string& name);
// The process at the other end, as it was when it connected or began to listen.
ucred peer_of(int socket);
bool is_own_user(const ucred& peer);

// Connects, with errno where the descriptor is not open. Another user's listener, which never accepts, does not block
// the caller for more than a second.
Descriptor connect_to(const std::string& name, int type);
// Names that begin with `prefix` at which somebody listens or is connected, each once.
std::vector<std::string> socket_names(const std::string& prefix);

}  // namespace rnicsim::sim
