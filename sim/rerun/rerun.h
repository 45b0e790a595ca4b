// `rnicsim replay FILE`: the devices of a recorded run, driven again by what its software did, without its programs.
// docs/replay.md is its manual.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/engine_params.h"
#include "sim/json.h"
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
  std::optional<std::uint64_t> seed;
  bool as_possible = false;         // not at the recorded times, but after what was waited for
  ObserverOptions observers;
  std::string json;                 // empty: none
};

// 0: the devices did what was recorded, or the configuration is another; 1: they did not; 2: nothing to replay.
int rerun(const RerunOptions& options);

// --- For many replays.
// ConfigError: the trace cannot be replayed so. Nothing runs.
void check(const RerunOptions& options);
// The seed of the recorded run; ConfigError.
std::uint64_t recorded_seed(const std::string& trace);
// The same as `--json` writes; std::runtime_error: a step waits for what never comes.
Json rerun_json(const RerunOptions& options);

}  // namespace rnicsim::sim::rerun
