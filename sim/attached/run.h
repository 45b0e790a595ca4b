// `rnicsim run`, `serve` and `shell`: a system, and real programs on its hosts.
#pragma once

#include <functional>
#include <string>

#include "sim/json_output.h"
#include "sim/run_options.h"
#include "sim/system.h"
#include "sim/waterfall/waterfall.h"

namespace rnicsim::sim {

class OutsideWorld;

// Each returns the exit status. run: the worst of the programs'. A waterfall's summary is put into the results.
// `outside`: the system's hosts that are outside of the simulation, and with real time; nullptr: all are simulated.
int run_programs(System& system, const RunOptions& options, const Waterfall* waterfall, JsonOutput& json,
                 OutsideWorld* outside = nullptr);
int serve_programs(System& system, const RunOptions& options, const Waterfall* waterfall);
// The same, silently, in a process whose user has another at the terminal; `ready`: programs can attach at the socket.
int serve_shell(System& system, const RunOptions& options, const Waterfall* waterfall, const std::string& socket_name,
                const std::function<void()>& ready);

}  // namespace rnicsim::sim
