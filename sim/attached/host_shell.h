// `rnicsim shell`: the user's shell, whose programs run on a simulated host. The shell itself is outside of the
// simulation: it keeps real time, the terminal and its jobs.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace rnicsim::sim {

struct ShellRequest {
  std::string host;
  std::optional<std::string> command;  // for its -c; nullopt: it reads its standard input
};

// Each returns the shell's exit status, as shells do (128 + signal); ConfigError: there is no such host or shell.
//
// In the simulation that runs; where that ends first, the shell is hung up.
int join_shell(const ShellRequest& request);
// In one of its own. `simulate` is called in a child process, has to call back when programs can attach at that socket,
// and returns the exit status at the SIGTERM that the shell's end brings. Its status, where it is not 0, is the result.
int open_shell(const ShellRequest& request,
               const std::function<int(const std::string& socket_name, const std::function<void()>& ready)>& simulate);

}  // namespace rnicsim::sim
