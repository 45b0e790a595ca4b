// A replay for people, and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sim/replay/replay.h"

namespace rnicsim::sim::replay {

std::string report_text(const Replay& replay);
// ConfigError: the file cannot be written.
nlohmann::ordered_json report_json(const Replay& replay);

}  // namespace rnicsim::sim::replay
