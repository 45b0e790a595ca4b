// SPDX-License-Identifier: Apache-2.0
// A set of results: the data that `rnicsim report` has of a sweep or of one run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/sweep/results.h"

namespace rnicsim::sim::report {

// A resource that can be busy: a unit, a direction of a link, a CPU.
struct Resource {
  std::string host, name;
  auto operator<=>(const Resource&) const = default;
};

struct Use {
  double share = 0;              // fraction of 1
  std::optional<double> queue;   // average number of waiting entries
  std::optional<double> growth;  // growth of the queue over the run
};

// Limiting factor. If no resource is used up, the name is "latency" or "pace", without a host.
struct Limit {
  Resource resource;
  Use use;
  std::string text;
};

// Times of the waterfall for one kind of work request, in the order of the stages.
struct Stages {
  std::string operation;
  bool one_way = false;
  double work_requests = 0;
  double latency_ps = 0;  // summed over all work requests
  std::vector<std::pair<std::string, double>> stage_ps;
};

struct Run {
  enum class Status { done, failed, missing };
  std::uint64_t seed = 0;
  Status status = Status::missing;
  std::string error;
};

struct Point {
  std::uint64_t number = 0;
  std::vector<std::string> values;  // by axis
  std::vector<Run> runs;
  std::map<std::string, sweep::Interval> metrics;
  bool equal_runs = false;       // all seeds gave the same results: no confidence interval
  std::map<Resource, Use> uses;  // means over the seeds
  std::vector<Stages> waterfall;
  std::optional<Limit> limit;
  std::map<std::string, std::string> configuration;  // empty: no seed has completed
};

struct Axis {
  std::string key;
  std::vector<std::string> values;
  std::string spacing;  // "geometric", "linear" or "list"
};

// A published value, shown beside the results.
struct Reference {
  std::string label, metric;
  std::map<std::string, std::string> at;  // value by axis
  double value = 0;
};

struct ResultSet {
  std::string name, source;  // `source`: folder or file
  std::string command;       // "sweep", "bench" or "run"
  std::string version;
  std::vector<std::string> invocation;
  std::string workload, nic, host, topology;
  std::set<std::string> extrapolated = {};  // extrapolated NICs
  std::vector<std::string> settings;        // "key=value"
  std::vector<std::string> faults;
  std::vector<Axis> axes;
  std::vector<std::uint64_t> seeds;
  std::vector<Point> points;
  std::map<std::string, std::string> units;  // by metric
  std::vector<Reference> references;
};

}  // namespace rnicsim::sim::report
