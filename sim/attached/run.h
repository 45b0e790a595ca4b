// `rnicsim run`, `serve`, `shell` and `env`: a system, and real programs on its hosts.
#pragma once

#include <functional>
#include <string>

#include "sim/json_output.h"
#include "sim/run_options.h"
#include "sim/system.h"
#include "sim/waterfall/waterfall.h"

namespace rnicsim::sim {

// Each returns the exit status. run: the worst of the programs'. A waterfall's summary is put into the results.
int run_programs(System& system, const RunOptions& options, const Waterfall* waterfall, JsonOutput& json);
int serve_programs(System& system, const RunOptions& options, const Waterfall* waterfall);
// The same, silently, in a process whose user has another at the terminal; `ready`: programs can attach.
int serve_shell(System& system, const RunOptions& options, const Waterfall* waterfall,
                const std::function<void()>& ready);
int print_environment(const std::string& host);
// The process that serves there. ConfigError: nobody does, or it has no such host.
pid_t simulation_with(const std::string& host, const std::string& socket_name);
// Where `serve` does: RNICSIM_SOCKET of the environment, or the user's own.
std::string default_socket_name();

}  // namespace rnicsim::sim
