// The first work requests of a run as a timeline, in the trace-event format that ui.perfetto.dev opens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/waterfall/journey.h"

namespace rnicsim::sim {

class System;
class Waterfall;

class Timeline {
 public:
  // Of the first `most` that devices took. ConfigError: the file cannot be made.
  Timeline(System& system, Waterfall& waterfall, const std::filesystem::path& path, std::uint64_t most);
  // The run has ended. ConfigError: not everything could be written.
  void finish();

 private:
  const std::filesystem::path path_;
  std::ofstream file_;
  std::vector<std::string> hosts_;
  std::vector<Journey> journeys_;
};

// The whole file.
std::string timeline_json(const std::vector<std::string>& hosts, std::vector<Journey> journeys);

}  // namespace rnicsim::sim
