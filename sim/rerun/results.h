// SPDX-License-Identifier: Apache-2.0
// Results of a replay of a recording, for machines (docs/results.schema.json).
#pragma once

#include "model/base/units.h"
#include "sim/rerun/rerun_options.h"
#include "sim/results/json.h"

namespace rnicsim::sim {
class RequestSummary;
class System;
struct TraceHeader;
}  // namespace rnicsim::sim

namespace rnicsim::sim::rerun {

struct RerunResult {
  const RerunOptions& options;
  const TraceHeader& recorded;
  Duration recorded_end{};
  const RequestSummary& recorded_requests;
  System& system;
  Duration end{};
  const RequestSummary& requests;
  std::uint64_t seed = 1;
};

// Each flow has the requests of one host. A host without requests in the recorded run has no flow.
Json results_json(const RerunResult& result);

}  // namespace rnicsim::sim::rerun
