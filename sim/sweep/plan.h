// SPDX-License-Identifier: Apache-2.0
// Plan of a sweep: the workload or recording, constant parameters, varied parameters, and seeds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/results/json.h"
#include "sim/sweep/values.h"

namespace rnicsim::sim::bench {
struct BenchOptions;
}
namespace rnicsim::sim::rerun {
struct RerunOptions;
}

namespace rnicsim::sim::sweep {

// A published value, shown beside the curves.
struct Reference {
  std::string label;
  std::string metric;                                   // name in the results: "flow[0].rate_per_s"
  std::vector<std::pair<std::string, std::string>> at;  // keys of axes with their values
  double value = 0;
};

struct SweepPlan {
  std::string name;
  std::string workload;
  std::string recording;  // a trace instead of a workload, replayed as fast as possible
  std::optional<std::string> nic, host, topology;
  std::vector<std::string> sets, faults;
  std::string engine;  // empty: the default
  bool waterfall = false;
  std::vector<Axis> axes;  // the last varies fastest
  std::vector<std::uint64_t> seeds{1};
  std::vector<std::string> metrics;  // in addition to the flows' metrics: "h0.nic.contexts.qpc.hit_rate"
  std::vector<Reference> references;

  bool is_of_recording() const { return !recording.empty(); }
  std::size_t points() const;
  std::size_t runs() const { return points() * seeds.size(); }
  // Index of the value on each axis.
  std::vector<std::size_t> place_of(std::size_t point) const;
  // ConfigError: no point can be run (with the reason for the first point), or there are too many points.
  void check() const;
  // Files that configure the runs: workloads, NICs, topologies.
  std::vector<std::filesystem::path> files() const;
};

// One run of the plan.
struct Run {
  std::size_t point;
  std::uint64_t seed;
};
Run run_of(const SweepPlan& plan, std::size_t run);

bench::BenchOptions options_of(const SweepPlan& plan, const Run& run);
// For a plan with a recording. ConfigError: a key is only for workloads.
rerun::RerunOptions rerun_options_of(const SweepPlan& plan, const Run& run);

// Reads a sweep file (TOML, docs/sweep.md). The path of a workload or a recording is relative to the file. ConfigError.
SweepPlan read_sweep(const std::filesystem::path& path);

Json plan_json(const SweepPlan& plan);
// JsonError: not a plan.
SweepPlan plan_of(const Json& json);

}  // namespace rnicsim::sim::sweep
