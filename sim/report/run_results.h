// The results of one run of `bench` or `run`, as far as a report shows them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/report/json_field.h"
#include "sim/report/result_set.h"

namespace rnicsim::sim::report {

// What this version reads: that of docs/results.schema.json.
void check_schema(const Field& results);

std::optional<Limit> read_limit(const Field& field);

struct RunResults {
  bool extrapolated = false;  // its NIC
  std::string command, version, workload, nic, host, topology;
  std::uint64_t seed = 0;
  std::map<std::string, double> flow_metrics;  // "flow[0].rate_per_s"; those that a sweep gives with its points
  std::map<std::string, std::pair<double, double>> own_intervals;  // of one run, by batch means: low and high
  std::map<std::string, double> counters;      // "h0.nic.tx.packets", and what follows from them
  std::map<std::string, std::string> units;    // of both
  std::map<Resource, Use> uses;                // without what was never busy
  std::optional<Limit> limit;
  std::vector<Stages> waterfall;
  std::map<std::string, std::string> configuration;
};

// ConfigError: the file is not what bench or run of this version writes.
RunResults read_run(const Field& results);

}  // namespace rnicsim::sim::report
