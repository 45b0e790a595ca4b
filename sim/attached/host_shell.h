// SPDX-License-Identifier: Apache-2.0
// `rnicsim shell`: the user's shell, whose programs run on a simulated host. The shell itself runs outside of the
// simulation, in real time, with the terminal and job control.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace rnicsim::sim {

struct ShellRequest {
  std::string host;
  std::optional<std::string> command;  // for the shell's -c; nullopt: the shell reads standard input
};

// Both return the shell's exit status, as shells do (128 + signal number). ConfigError: no such host or shell.
int join_shell(const ShellRequest& request);
// Starts a simulation for the shell. `simulate` runs in a child process. It must call `ready` when programs can attach
// at `socket_name`, and returns the exit status after the SIGTERM that is sent when the shell ends. A status of the
// simulation other than 0 is the result.
int open_shell(const ShellRequest& request,
               const std::function<int(const std::string& socket_name, const std::function<void()>& ready)>& simulate);

}  // namespace rnicsim::sim
