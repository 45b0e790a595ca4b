// What a run leaves behind: the summary for people, the results file for machines.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/json.h"
#include "sim/run_options.h"
#include "sim/system.h"
#include "sim/waterfall/waterfall.h"

namespace rnicsim::sim {

struct ProgramResult {
  std::string host;
  std::vector<std::string> argv;
  int exit_status;  // 128 + signal for one that was killed
};

struct RunOutcome {
  Duration end;  // simulated time when the last program had ended
  std::vector<ProgramResult> programs;
  std::vector<std::string> warnings;  // "not reproducible: ..."
  std::optional<WaterfallSummary> waterfall;

  int worst_status() const;
};

// A table of the counters that counted something and of the caches' hit rates, a column a host; warnings and failures
// first, switches last.
std::string summary_text(const System& system, const RunOutcome& outcome);
// JSON: the resolved parameters and fault rules, the counters of hosts and switches with the caches' hit rates, the
// simulated end, the exit statuses.
Json results_json(const System& system, const RunOptions& options, const RunOutcome& outcome);

}  // namespace rnicsim::sim
