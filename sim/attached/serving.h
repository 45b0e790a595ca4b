// SPDX-License-Identifier: Apache-2.0
// The socket at which `serve` and `shell` listen for programs, and the search for it by `env` and `shell`.
//
// RNICSIM_SOCKET names the socket. Without the variable the name has a random part, so that no other local user can
// take it beforehand. A simulation of this user is then found among the machine's sockets by the user of the listening
// process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace rnicsim::sim {

struct Serving {
  std::string socket_name;
  pid_t pid;
};

// The serving simulation of this user; nullopt: none. ConfigError: another user listens at RNICSIM_SOCKET, or the
// variable is not set and several simulations of this user serve.
std::optional<Serving> find_serving();
// The serving simulation, which must have `host`. ConfigError: no simulation serves, or no such host.
Serving serving_with(const std::string& host);
// Socket name for a new simulation.
std::string name_to_serve_at();
// Called after the simulation listens at `socket_name`. ConfigError: another simulation of this user serves, and
// programs could not tell the two apart.
void require_alone(const std::string& socket_name);

int print_environment(const std::string& host);

}  // namespace rnicsim::sim
