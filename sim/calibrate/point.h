// SPDX-License-Identifier: Apache-2.0
// A point of a calibration experiment: one run of a workload, in a separate process.
#pragma once

#include <string>
#include <vector>

#include "sim/results/json.h"

namespace rnicsim::sim::bench {
struct Prepared;
}

namespace rnicsim::sim::calibrate {

struct Point {
  std::string name;               // name in its row, such as "308 QPs"
  std::string workload;           // name in sim/workloads
  std::vector<std::string> sets;  // as `rnicsim bench --set` takes them

  // The same point with additional `sets`.
  Point with(const std::vector<std::string>& more) const;
};

// ConfigError: the point cannot be run.
bench::Prepared prepared(const Point& point);
bool is_possible(const Point& point);

// Results as of `rnicsim bench --json`, without the part that differs from run to run, in the order of the points. Up
// to `jobs` points run at a time. std::runtime_error: a point failed.
std::vector<Json> run_points(const std::vector<Point>& points, unsigned jobs);

}  // namespace rnicsim::sim::calibrate
