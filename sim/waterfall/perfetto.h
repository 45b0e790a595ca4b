// The first work requests of a run as a timeline, and congestion over the whole run, in the trace-event format that
// ui.perfetto.dev opens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "sim/waterfall/journey.h"

namespace rnicsim::sim {

class CongestionTracks;
class System;
class Waterfall;

class Timeline {
 public:
  // The timeline shows the first `wqes` work requests that devices took, and at most `samples` samples of congestion;
  // 0: no congestion. ConfigError: the file cannot be made.
  Timeline(System& system, Waterfall& waterfall, const std::filesystem::path& path, std::uint64_t wqes,
           std::uint64_t samples);
  ~Timeline();
  // The run has ended. ConfigError: not everything could be written.
  void finish();

 private:
  const std::filesystem::path path_;
  std::ofstream file_;
  std::vector<std::string> hosts_;
  std::vector<Journey> journeys_;
  const std::unique_ptr<CongestionTracks> congestion_;  // nullptr: none
};

// The whole file. `more`: further lines of it, with a comma at the end of each.
std::string timeline_json(const std::vector<std::string>& hosts, std::vector<Journey> journeys,
                          const std::string& more = {});

}  // namespace rnicsim::sim
