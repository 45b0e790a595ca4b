// A replay for people, and for programs.
#pragma once

#include <string>

#include "sim/replay/replay.h"
#include "sim/results/json.h"

namespace rnicsim::sim::replay {

std::string report_text(const Replay& replay);
// ConfigError: the file cannot be written.
Json report_json(const Replay& replay);

}  // namespace rnicsim::sim::replay
