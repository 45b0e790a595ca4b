// SPDX-License-Identifier: Apache-2.0
// The calibration experiments: the points to run, and the numbers of the published measurement.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/calibrate/point.h"

namespace rnicsim::sim::calibrate {

// Results of the points of a row, by index.
class Measured {
 public:
  explicit Measured(const std::vector<Json>& results) : results_(results) {}

  std::size_t size() const { return results_.size(); }
  double rate(std::size_t point, std::size_t flow = 0) const;     // operations per second
  double goodput(std::size_t point, std::size_t flow = 0) const;  // bits per second
  double latency(std::size_t point, std::size_t flow = 0) const;  // mean, in ns
  double counter(std::size_t point, const char* host, const char* path) const;
  double derived(std::size_t point, const char* host, const char* path) const;

 private:
  const Json& flow(std::size_t point, std::size_t flow) const;

  const std::vector<Json>& results_;
};

inline constexpr double kMuch = 1e12;  // as Check::high: no upper limit

// A number that is compared with a published one.
struct Check {
  std::string what;
  double expected;
  double low, high;
  std::string unit;
  std::function<double(const Measured&)> simulated;
  std::string argued = {};  // document that explains a number outside of its tolerance; empty: such a number fails
  std::string nic = {};     // NIC of the number, in a row with several NICs
};

struct Row {
  std::string id;
  std::string setup;
  std::vector<Point> points;
  std::vector<Check> checks;
};

std::vector<Row> all_rows();

}  // namespace rnicsim::sim::calibrate
