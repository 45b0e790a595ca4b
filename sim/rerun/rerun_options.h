// SPDX-License-Identifier: Apache-2.0
// Options of `rnicsim replay FILE` for a recorded run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/engine_params.h"
#include "sim/observers.h"

namespace rnicsim::sim::rerun {

struct RerunOptions {
  std::string trace;
  // Changes of the recorded configuration.
  std::string nic;   // NIC profile; empty: the recorded NIC
  std::string host;  // host profile; empty: the recorded hosts
  std::vector<std::string> sets;
  std::vector<std::string> faults;  // in addition to the recorded fault rules
  EngineOptions engine;
  std::optional<std::uint64_t> seed;  // nullopt: the recorded seed
  bool as_possible = false;           // replay each step after the output that it waited for, not at its recorded time
  ObserverOptions observers;
  std::string json;  // file for the results; empty: none
};

}  // namespace rnicsim::sim::rerun
