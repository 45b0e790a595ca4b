// What a trace says first: the program, the seed, the configuration, the hosts.
#pragma once

#include <cstdint>

#include "sim/recording/format.h"
#include "sim/run_options.h"

namespace rnicsim::sim {

class System;

// The header of a run's trace: without commands, and with them.
TraceHeader trace_header(const System& system, std::uint64_t seed, TimeMode time);
TraceHeader trace_header(const System& system, const RunOptions& options);

}  // namespace rnicsim::sim
