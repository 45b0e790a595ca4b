// What a sweep is to run: a workload or a recording, what stays, what is varied, and with which seeds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/json.h"
#include "sim/sweep/values.h"

namespace rnicsim::sim::bench {
struct BenchOptions;
}
namespace rnicsim::sim::rerun {
struct RerunOptions;
}

namespace rnicsim::sim::sweep {

// What was published, to be shown beside the curves.
struct Reference {
  std::string label;
  std::string metric;                                   // as in the results: "flow[0].rate_per_s"
  std::vector<std::pair<std::string, std::string>> at;  // keys of axes and their values
  double value = 0;
};

struct SweepPlan {
  std::string name;
  std::string workload;
  std::string recording;  // in its place: a trace, replayed as fast as possible
  std::optional<std::string> nic, host, topology;
  std::vector<std::string> sets, faults;
  std::string engine;  // empty: the default
  bool waterfall = false;
  std::vector<Axis> axes;  // the last varies fastest
  std::vector<std::uint64_t> seeds{1};
  std::vector<std::string> metrics;  // besides those of the flows: "h0.nic.contexts.qpc.hit_rate"
  std::vector<Reference> references;

  bool is_of_recording() const { return !recording.empty(); }
  std::size_t points() const;
  std::size_t runs() const { return points() * seeds.size(); }
  // Of each axis, which of its values.
  std::vector<std::size_t> place_of(std::size_t point) const;
  // ConfigError: nothing of it can be run, and why not the first. Too many points.
  void check() const;
  // What its runs are configured by: workloads, NICs, topologies.
  std::vector<std::filesystem::path> files() const;
};

// A run of the plan: a point with a seed.
struct Run {
  std::size_t point;
  std::uint64_t seed;
};
Run run_of(const SweepPlan& plan, std::size_t run);

bench::BenchOptions options_of(const SweepPlan& plan, const Run& run);
// Of a recording. ConfigError: a key is one of workloads.
rerun::RerunOptions rerun_options_of(const SweepPlan& plan, const Run& run);

// A TOML file, docs/sweep.md. ConfigError: what is wrong, and where. The path of a workload or a recording is relative
// to the file.
SweepPlan read_sweep(const std::filesystem::path& path);

Json plan_json(const SweepPlan& plan);
// JsonError: it is none.
SweepPlan plan_of(const Json& json);

}  // namespace rnicsim::sim::sweep
