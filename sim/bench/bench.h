// SPDX-License-Identifier: Apache-2.0
// `rnicsim bench`: the agents of a workload file drive the NICs; prints the results.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/bench/plan.h"
#include "sim/bench/workload.h"
#include "sim/config/config.h"
#include "sim/config/engine_params.h"
#include "sim/observers.h"
#include "sim/results/json.h"
#include "sim/watch.h"

namespace rnicsim::sim::bench {

struct BenchOptions {
  std::string workload;           // a file, or the name of a file in sim/workloads
  std::vector<std::string> sets;  // parameters, and keys of the workload
  std::vector<std::string> faults;
  std::optional<std::string> nic, host, topology;
  EngineOptions engine;
  std::optional<std::uint64_t> seed;
  std::string json;           // output file; empty: none
  bool all_counters = false;  // the text has the counters of each host and switch
  ObserverOptions observers;
  Limits limits;
  std::uint32_t processes = 1;  // processes that simulate the system together; 0: as many as MPI started
};

// A workload that is ready to run.
struct Prepared {
  Workload workload;
  Config config;
  Plan plan;
};

// ConfigError.
Prepared prepare(const BenchOptions& options);
// Runs the workload. Returns the content of `--json`.
Json bench_json(const BenchOptions& options);
// As prepare(), for a run of several processes. ConfigError: also for options that several processes do not support.
Prepared prepare_shared(const BenchOptions& options);
// Runs the command. Returns 0; 1 if a counter disagrees with the trace; the status of the signal or limit that ended
// the run. Other failures are exceptions, for example EngineMismatch.
int run_bench(const BenchOptions& options);

}  // namespace rnicsim::sim::bench
