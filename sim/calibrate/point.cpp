// SPDX-License-Identifier: Apache-2.0
#include "sim/calibrate/point.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <stdexcept>

#include "sim/bench/bench.h"
#include "sim/config/config_error.h"
#include "sim/os/child_pool.h"
#include "sim/os/progress_line.h"

namespace rnicsim::sim::calibrate {
namespace {

bench::BenchOptions options_of(const Point& point) {
  bench::BenchOptions options;
  options.workload = point.workload;
  options.sets = point.sets;
  return options;
}

std::string run_point(const Point& point) {
  auto json = bench::bench_json(options_of(point));
  json.erase("simulator");
  return json.dump();
}

}  // namespace

Point Point::with(const std::vector<std::string>& more) const {
  Point other = *this;
  if (!more.empty()) other.name += fmt::format(", {}", fmt::join(more, ", "));
  other.sets.insert(other.sets.end(), more.begin(), more.end());
  return other;
}

bench::Prepared prepared(const Point& point) { return bench::prepare(options_of(point)); }

bool is_possible(const Point& point) try {
  prepared(point);
  return true;
} catch (const ConfigError&) {
  return false;
}

std::vector<Json> run_points(const std::vector<Point>& points, unsigned jobs) {
  std::vector<Json> results(points.size());
  std::vector<std::size_t> all(points.size());
  std::iota(all.begin(), all.end(), 0);
  std::size_t done = 0;
  run_in_children(
      all, jobs,
      {.work = [&](std::size_t point) { return run_point(points[point]); },
       .done =
           [&](const ChildResult& result) {
             const auto& point = points[result.job];
             if (!result.failure.empty())
               throw std::runtime_error(fmt::format("{}, {}: {}", point.workload, point.name, result.failure));
             results[result.job] = Json::parse(result.text);
             ++done;
           },
       .look =
           [&](const std::vector<std::size_t>& under_way) {
             if (!under_way.empty() && progress_line::is_due())
               progress_line::show(fmt::format("{} of {} points done; waits for {}", done, points.size(),
                                               points[under_way.front()].name));
           }});
  progress_line::erase();
  return results;
}

}  // namespace rnicsim::sim::calibrate
