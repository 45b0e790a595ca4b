// `rnicsim bench`: a workload file's agents drive the NICs, and what they saw is printed.
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
#include "sim/json.h"
#include "sim/observers.h"
#include "sim/watch.h"

namespace rnicsim::sim::bench {

struct BenchOptions {
  std::string workload;           // a file, or the name of one in sim/workloads
  std::vector<std::string> sets;  // parameters, and the workload's own keys
  std::vector<std::string> faults;
  std::optional<std::string> nic, host, topology;
  EngineOptions engine;
  std::optional<std::uint64_t> seed;
  std::string json;  // empty: none
  bool all_counters = false;  // in the text, of each host and switch
  ObserverOptions observers;
  Limits limits;
  std::uint32_t processes = 1;  // that simulate it together; 0: as many as MPI started
};

// A workload with all that it needs to run.
struct Prepared {
  Workload workload;
  Config config;
  Plan plan;
};

// ConfigError: what is wrong.
Prepared prepare(const BenchOptions& options);
// Runs it: what `--json` writes.
Json bench_json(const BenchOptions& options);
// What a run of several processes takes; ConfigError: what is wrong, or what they cannot do together.
Prepared prepare_shared(const BenchOptions& options);
// The command: 0; 1 when a counter disagrees with the trace; the status of who or what ended it; or an exception
// (EngineMismatch is one).
int run_bench(const BenchOptions& options);

}  // namespace rnicsim::sim::bench
