// SPDX-License-Identifier: Apache-2.0
// `rnicsim replay FILE`: drives the devices of a recorded run with the recorded steps of its software, without the
// programs. Manual: docs/replay.md.
#pragma once

#include <cstdint>
#include <string>

#include "sim/rerun/rerun_options.h"
#include "sim/results/json.h"

namespace rnicsim::sim::rerun {

// Returns 0: the devices behaved as recorded, or the configuration was changed; 1: they did not; 2: nothing to replay.
int rerun(const RerunOptions& options);

// --- For many replays.
// Checks the options without a run. ConfigError: the trace cannot be replayed with these options.
void check(const RerunOptions& options);
// Seed of the recorded run. ConfigError.
std::uint64_t recorded_seed(const std::string& trace);
// Results as `--json` writes them. std::runtime_error: a step waits for an event that never comes.
Json rerun_json(const RerunOptions& options);

}  // namespace rnicsim::sim::rerun
