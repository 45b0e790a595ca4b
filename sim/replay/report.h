// A replay for people, and for programs.
#pragma once

#include <filesystem>
#include <string>

#include "sim/replay/replay.h"

namespace rnicsim::sim::replay {

std::string report_text(const Replay& replay);
// ConfigError: the file cannot be written.
void write_report(const std::filesystem::path& path, const Replay& replay);

}  // namespace rnicsim::sim::replay
