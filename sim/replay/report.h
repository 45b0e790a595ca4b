// SPDX-License-Identifier: Apache-2.0
// Report of a replay as text and as JSON.
#pragma once

#include <string>

#include "sim/replay/replay.h"
#include "sim/results/json.h"

namespace rnicsim::sim::replay {

std::string report_text(const Replay& replay);
// ConfigError: the file cannot be written.
Json report_json(const Replay& replay);

}  // namespace rnicsim::sim::replay
