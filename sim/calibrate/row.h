// The calibration experiments: what is run, and what the published measurement says of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/calibrate/point.h"

namespace rnicsim::sim::calibrate {

// What was measured at the points of a row, by their place.
class Measured {
 public:
  explicit Measured(const std::vector<Json>& results) : results_(results) {}

  std::size_t size() const { return results_.size(); }
  double rate(std::size_t point, std::size_t flow = 0) const;      // operations a second
  double goodput(std::size_t point, std::size_t flow = 0) const;   // bits a second
  double latency(std::size_t point, std::size_t flow = 0) const;   // ns, the mean
  double counter(std::size_t point, const char* host, const char* path) const;
  double derived(std::size_t point, const char* host, const char* path) const;

 private:
  const Json& flow(std::size_t point, std::size_t flow) const;

  const std::vector<Json>& results_;
};

inline constexpr double kMuch = 1e12;  // as Check::high: no upper limit

// One number that is compared with a published one.
struct Check {
  std::string what;
  double expected;
  double low, high;
  std::string unit;
  std::function<double(const Measured&)> simulated;
  std::string argued = {};  // where it is said why it misses its tolerance; empty: it must not
  std::string nic = {};     // whose it is, in a row of several NICs
};

struct Row {
  std::string id;
  std::string setup;
  std::vector<Point> points;
  std::vector<Check> checks;
};

std::vector<Row> all_rows();

}  // namespace rnicsim::sim::calibrate
