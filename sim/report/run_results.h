// SPDX-License-Identifier: Apache-2.0
// Results of one run of `bench` or `run`, as far as a report shows them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/report/json_field.h"
#include "sim/report/result_set.h"

namespace rnicsim::sim::report {

// ConfigError: another schema version than docs/results.schema.json.
void check_schema(const Field& results);

std::optional<Limit> read_limit(const Field& field);

struct RunResults {
  bool extrapolated = false;  // the run's NIC is extrapolated
  std::string command, version, workload, nic, host, topology;
  std::uint64_t seed = 0;
  std::map<std::string, double> flow_metrics;  // "flow[0].rate_per_s"; the same metrics as for a sweep's points
  std::map<std::string, std::pair<double, double>> own_intervals;  // confidence interval by batch means: low, high
  std::map<std::string, double> counters;                          // "h0.nic.tx.packets", and derived values
  std::map<std::string, std::string> units;                        // of metrics and counters
  std::map<Resource, Use> uses;                                    // without resources that were never busy
  std::optional<Limit> limit;
  std::vector<Stages> waterfall;
  std::map<std::string, std::string> configuration;
};

// ConfigError: the file is not the output of bench or run of this version.
RunResults read_run(const Field& results);

}  // namespace rnicsim::sim::report
