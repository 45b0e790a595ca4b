// `rnicsim replay FILE`: the devices of a recorded run, driven again by what its software did, without its programs.
// docs/replay.md is its manual.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/config/engine_params.h"
#include "sim/observers.h"

namespace rnicsim::sim::rerun {

struct RerunOptions {
  std::string trace;
  // In the place of what was recorded.
  std::string nic;                  // a profile; empty: the recorded NIC
  std::string host;                 // the same of the hosts
  std::vector<std::string> sets;
  std::vector<std::string> faults;  // besides those recorded
  EngineOptions engine;
  bool as_possible = false;         // not at the recorded times, but after what was waited for
  ObserverOptions observers;
};

// 0: the devices did what was recorded, or the configuration is another; 1: they did not; 2: nothing to replay.
int rerun(const RerunOptions& options);

}  // namespace rnicsim::sim::rerun
