// A point of a calibration experiment: one run of a workload, in a process of its own.
#pragma once

#include <string>
#include <vector>

#include "sim/json.h"

namespace rnicsim::sim::bench {
struct Prepared;
}

namespace rnicsim::sim::calibrate {

struct Point {
  std::string name;               // within its row, as in "308 QPs"
  std::string workload;           // of sim/workloads
  std::vector<std::string> sets;  // as `rnicsim bench --set` takes them

  // Another run of it.
  Point with(const std::vector<std::string>& more) const;
};

// ConfigError: it cannot be run.
bench::Prepared prepared(const Point& point);
bool is_possible(const Point& point);

// What `rnicsim bench --json` writes, less what is not the same at every run. In the order of the points; up to `jobs`
// of them run at a time. std::runtime_error: a point failed.
std::vector<Json> run_points(const std::vector<Point>& points, unsigned jobs);

}  // namespace rnicsim::sim::calibrate
