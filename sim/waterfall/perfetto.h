// SPDX-License-Identifier: Apache-2.0
// Writes a timeline of the first work requests of a run, and of congestion over the whole run, in the trace-event
// format, for ui.perfetto.dev.
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
  // `wqes`: number of work requests to show, the first that devices take. `samples`: limit of congestion samples; 0: no
  // congestion. ConfigError: the file cannot be created.
  Timeline(System& system, Waterfall& waterfall, const std::filesystem::path& path, std::uint64_t wqes,
           std::uint64_t samples);
  ~Timeline();
  // Call at the end of the run. ConfigError: a write failed.
  void finish();

 private:
  const std::filesystem::path path_;
  std::ofstream file_;
  std::vector<std::string> hosts_;
  std::vector<Journey> journeys_;
  const std::unique_ptr<CongestionTracks> congestion_;  // nullptr: none
};

// Text of the file. `more`: further lines, each with a final comma.
std::string timeline_json(const std::vector<std::string>& hosts, std::vector<Journey> journeys,
                          const std::string& more = {});

}  // namespace rnicsim::sim
