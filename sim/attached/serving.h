// Where `serve` and `shell` listen for programs, and how `env` and another `shell` find them.
//
// RNICSIM_SOCKET names the socket. Without it the name has a random part, which no other local user can take
// beforehand; this user's simulation is then found among the sockets of this machine, by the user who listens there.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace rnicsim::sim {

struct Serving {
  std::string socket_name;
  pid_t pid;
};

// The simulation of this user that serves. ConfigError: another user listens at the name that RNICSIM_SOCKET gives, or
// without that variable several simulations of this user serve.
std::optional<Serving> find_serving();
// The same, with that host; ConfigError: nobody serves, or it has no such host.
Serving serving_with(const std::string& host);
// Where a new one is to listen.
std::string name_to_serve_at();
// Once it listens there. ConfigError: another simulation of this user serves, and programs would not know which is
// meant.
void require_alone(const std::string& socket_name);

int print_environment(const std::string& host);

}  // namespace rnicsim::sim
