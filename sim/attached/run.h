// SPDX-License-Identifier: Apache-2.0
// `rnicsim run`, `serve` and `shell`: run real programs on the hosts of a system.
#pragma once

#include <functional>
#include <string>

#include "sim/results/json_output.h"
#include "sim/run_options.h"
#include "sim/system.h"
#include "sim/waterfall/waterfall.h"

namespace rnicsim::sim {

class OutsideWorld;

// Both return the exit status; `run` returns the worst status of the programs. The waterfall's summary goes into the
// results. `outside`: hosts outside of the simulation, in real time; nullptr: all hosts are simulated.
int run_programs(System& system, const RunOptions& options, const Waterfall* waterfall, JsonOutput& json,
                 OutsideWorld* outside = nullptr);
int serve_programs(System& system, const RunOptions& options, const Waterfall* waterfall);
// As serve_programs, without output, for a process whose parent holds the terminal. `ready` is called when programs
// can attach at the socket.
int serve_shell(System& system, const RunOptions& options, const Waterfall* waterfall, const std::string& socket_name,
                const std::function<void()>& ready);

}  // namespace rnicsim::sim
