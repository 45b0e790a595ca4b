// SPDX-License-Identifier: Apache-2.0
// Makes a trace's header: program, seed, configuration, hosts.
#pragma once

#include <cstdint>

#include "sim/run_options.h"
#include "sim/trace_file/format.h"

namespace rnicsim::sim {

class System;

// Header of a run's trace; the second form also fills the commands.
TraceHeader trace_header(const System& system, std::uint64_t seed, TimeMode time);
TraceHeader trace_header(const System& system, const RunOptions& options);

}  // namespace rnicsim::sim
