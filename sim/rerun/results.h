// What a replay of a recording measured, for machines: docs/results.schema.json.
#pragma once

#include "model/base/units.h"
#include "sim/json.h"
#include "sim/rerun/rerun.h"

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

// A flow is the requests of a host: of each host that had any in the recorded run.
Json results_json(const RerunResult& result);

}  // namespace rnicsim::sim::rerun
