// SPDX-License-Identifier: Apache-2.0
// `rnicsim replay FILE`: drives the devices of a recorded run with the recorded steps of its software, without the
// programs. Manual: docs/replay.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/config/engine_params.h"
#include "sim/observers.h"

namespace rnicsim::sim::rerun {

struct RerunOptions {
  std::string trace;
  // Changes of the recorded configuration.
  std::string nic;                  // NIC profile; empty: the recorded NIC
  std::string host;                 // host profile; empty: the recorded hosts
  std::vector<std::string> sets;
  std::vector<std::string> faults;  // in addition to the recorded fault rules
  EngineOptions engine;
  bool as_possible = false;         // replay each step after the output that it waited for, not at its recorded time
  ObserverOptions observers;
};

// Returns 0: the devices behaved as recorded, or the configuration was changed; 1: they did not; 2: nothing to replay.
int rerun(const RerunOptions& options);

}  // namespace rnicsim::sim::rerun
