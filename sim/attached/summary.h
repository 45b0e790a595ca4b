// SPDX-License-Identifier: Apache-2.0
// Results of a run: a summary for people, and a results file for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/results/json.h"
#include "sim/run_options.h"
#include "sim/system.h"
#include "sim/waterfall/waterfall.h"

namespace rnicsim::sim {

struct ProgramResult {
  std::string host;
  std::vector<std::string> argv;
  int exit_status;  // 128 + signal number if a signal killed the program
};

struct RunOutcome {
  Duration end;  // simulated time at which the last program ended
  std::vector<ProgramResult> programs;
  std::vector<std::string> warnings;  // "not reproducible: ..."
  std::optional<WaterfallSummary> waterfall;

  int worst_status() const;
};

// Warnings and failed programs, then a table with a column for each adapter: counters that are not zero, and hit rates
// of caches. Counters of switches come last.
std::string summary_text(const System& system, const RunOutcome& outcome);
// Resolved parameters and fault rules, counters of adapters and switches with cache hit rates, simulated end time, exit
// statuses.
Json results_json(const System& system, const RunOptions& options, const RunOutcome& outcome);

}  // namespace rnicsim::sim
