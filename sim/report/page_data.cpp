// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <utility>

#include "sim/report/shipped.h"
#include "sim/results/results_json.h"

namespace rnicsim::sim::report {
namespace {

// Six digits, more than a plot shows.
Json rounded(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e6) return static_cast<std::int64_t>(value);
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}
Json rounded(const std::optional<double>& value) { return value ? rounded(*value) : Json(); }

const char* text_of(Run::Status status) {
  return status == Run::Status::done ? "done" : status == Run::Status::failed ? "failed" : "missing";
}

bool is_of_flow(const std::string& metric) { return metric.starts_with("flow["); }

// Range of a metric over the points, relative to its largest magnitude; -1: always 0.
double variation(const ResultSet& set, const std::string& metric) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const auto& point : set.points)
    if (const auto found = point.metrics.find(metric); found != point.metrics.end()) {
      least = std::min(least, found->second.mean);
      most = std::max(most, found->second.mean);
    }
  const double size = std::max(std::abs(least), std::abs(most));
  return size > 0 && std::isfinite(size) ? (most - least) / size : -1;  // -1: a metric that is always 0 is left out
}

// Metrics of the flows in their order, then counters, the one with the largest variation first.
std::vector<std::string> chosen_metrics(const ResultSet& set, std::size_t most_counters, std::size_t& left_out) {
  std::set<std::string> names;
  for (const auto& [name, unit] : set.units)
    if (is_of_flow(name)) names.insert(name);  // also if no point has the metric
  std::vector<std::pair<double, std::string>> counters;
  for (const auto& point : set.points)
    for (const auto& [name, value] : point.metrics)
      if (names.insert(name).second) counters.emplace_back(-variation(set, name), name);
  std::erase_if(counters, [](const auto& counter) { return counter.first > 0; });
  std::ranges::sort(counters);
  left_out = counters.size() - std::min(counters.size(), most_counters);
  counters.resize(counters.size() - left_out);
  std::vector<std::string> chosen;
  for (const auto& name : names)
    if (is_of_flow(name)) chosen.push_back(name);
  for (auto& [rank, name] : counters) chosen.push_back(std::move(name));
  return chosen;
}

Json metric_json(const ResultSet& set, const std::string& name) {
  Json mean = Json::array(), low = Json::array(), high = Json::array(), seeds = Json::array();
  bool has_band = false, is_same = true;
  for (const auto& point : set.points) {
    const auto found = point.metrics.find(name);
    const bool known = found != point.metrics.end();
    const auto value = known ? found->second : sweep::Interval{};
    mean.push_back(known ? rounded(value.mean) : Json());
    low.push_back(known ? rounded(value.low) : Json());
    high.push_back(known ? rounded(value.high) : Json());
    seeds.push_back(value.count);
    has_band |= known && value.low != value.high;
    is_same &= seeds.back() == seeds.front();
  }
  const auto unit = set.units.find(name);
  Json json{{"name", name}, {"unit", unit == set.units.end() ? "" : unit->second}, {"mean", std::move(mean)}};
  if (has_band) {
    json["low"] = std::move(low);
    json["high"] = std::move(high);
  }
  json["n"] = is_same ? seeds.front() : std::move(seeds);
  return json;
}

// Resources by their highest use. A resource that limits a point is always included.
Json resources_json(const ResultSet& set, std::size_t most, Json& left_out) {
  std::map<Resource, double> highest;
  for (const auto& point : set.points) {
    for (const auto& [resource, use] : point.uses)
      highest.try_emplace(resource, 0).first->second = std::max(highest[resource], use.share);
    // A limit without a host is no resource: latency or the pace.
    if (point.limit && !point.limit->resource.host.empty())
      highest[point.limit->resource] = std::numeric_limits<double>::infinity();
  }
  std::vector<std::pair<double, Resource>> ranked;
  for (const auto& [resource, share] : highest) ranked.emplace_back(-share, resource);
  std::ranges::sort(ranked);
  if (ranked.size() > most)
    left_out = {{"resources", ranked.size() - most}, {"highest_use", rounded(-ranked[most].first)}};
  ranked.resize(std::min(ranked.size(), most));
  Json json = Json::array();
  for (const auto& [rank, resource] : ranked) {
    Json use = Json::array(), queue = Json::array(), growth = Json::array();
    for (const auto& point : set.points) {
      const auto found = point.uses.find(resource);
      const bool known = found != point.uses.end();
      // Resources that were never busy are not in the results.
      use.push_back(known ? rounded(found->second.share) : point.uses.empty() ? Json() : Json(0));
      queue.push_back(known ? rounded(found->second.queue) : Json());
      growth.push_back(known ? rounded(found->second.growth) : Json());
    }
    json.push_back({{"host", resource.host}, {"resource", resource.name}, {"use", std::move(use)}});
    const auto tells = [](const Json& value) { return !value.is_null(); };
    if (std::ranges::any_of(queue, tells)) json.back()["queue"] = std::move(queue);
    if (std::ranges::any_of(growth, tells)) json.back()["growth"] = std::move(growth);
  }
  return json;
}

// One kind of work request at all points, with the stages that took time at some point.
Json waterfall_of(const ResultSet& set, const std::string& operation, bool one_way) {
  Json latency = Json::array();
  std::vector<std::string> order;
  std::map<std::string, std::vector<double>> means;
  for (std::size_t i = 0; i < set.points.size(); ++i) {
    const auto& stages = set.points[i].waterfall;
    const auto found = std::ranges::find_if(
        stages, [&](const Stages& of) { return of.operation == operation && of.one_way == one_way; });
    const bool known = found != stages.end() && found->work_requests > 0;
    latency.push_back(known ? rounded(found->latency_ps / found->work_requests) : Json());
    if (!known) continue;
    for (const auto& [name, sum] : found->stage_ps) {
      auto& column = means[name];
      if (column.empty()) order.push_back(name);
      column.resize(set.points.size());
      column[i] = sum / found->work_requests;
    }
  }
  Json json{{"operation", operation}, {"one_way", one_way}, {"latency_ps", latency}, {"stages", Json::array()}};
  for (const auto& name : order) {
    if (std::ranges::all_of(means[name], [](double value) { return value == 0; })) continue;
    Json column = Json::array();
    for (std::size_t i = 0; i < set.points.size(); ++i)
      column.push_back(latency[i].is_null() ? Json() : rounded(means[name][i]));
    json["stages"].push_back({{"name", name}, {"mean_ps", std::move(column)}});
  }
  return json;
}

Json waterfalls_json(const ResultSet& set) {
  std::set<std::pair<std::string, bool>> kinds;
  for (const auto& point : set.points)
    for (const auto& stages : point.waterfall) kinds.emplace(stages.operation, stages.one_way);
  Json json = Json::array();
  for (const auto& [operation, one_way] : kinds) json.push_back(waterfall_of(set, operation, one_way));
  return json;
}

Json limit_json(const std::optional<Limit>& limit) {
  if (!limit) return nullptr;
  return {{"host", limit->resource.host},         {"resource", limit->resource.name},
          {"use", rounded(limit->use.share)},     {"queue", rounded(limit->use.queue)},
          {"growth", rounded(limit->use.growth)}, {"text", limit->text}};
}

Json points_json(const ResultSet& set) {
  Json json = Json::array();
  for (const auto& point : set.points) {
    Json runs = Json::array();
    for (const auto& run : point.runs) {
      runs.push_back({{"seed", run.seed}, {"status", text_of(run.status)}});
      if (!run.error.empty()) runs.back()["error"] = run.error;
    }
    json.push_back({{"number", point.number},
                    {"values", point.values},
                    {"runs", std::move(runs)},
                    {"limit", limit_json(point.limit)}});
    if (point.equal_runs) json.back()["equal_runs"] = true;
  }
  return json;
}

// Configuration of the first point that has run, and the differences of the other points.
Json configuration_json(const ResultSet& set) {
  const auto first = std::ranges::find_if(set.points, [](const Point& point) { return !point.configuration.empty(); });
  if (first == set.points.end()) return nullptr;
  const auto& baseline = first->configuration;
  Json differences = Json::array();
  for (const auto& point : set.points) {
    Json of = Json::object();
    for (const auto& [key, value] : point.configuration) {
      const auto same = baseline.find(key);
      if (same == baseline.end() || same->second != value) of[key] = value;
    }
    if (!point.configuration.empty())
      for (const auto& [key, value] : baseline)
        if (!point.configuration.contains(key)) of[key] = nullptr;
    differences.push_back(std::move(of));
  }
  return {{"point", first->number},
          {"baseline", baseline},
          {"differences", std::move(differences)},
          {"shipped", shipped_json(set.nic, set.host, set.topology, baseline)}};
}

Json references_json(const ResultSet& set) {
  Json json = Json::array();
  for (const auto& reference : set.references)
    json.push_back(
        {{"label", reference.label}, {"metric", reference.metric}, {"at", reference.at}, {"value", reference.value}});
  return json;
}

Json set_json(const ResultSet& set, std::size_t counters, const PageLimits& limits) {
  Json axes = Json::array(), metrics = Json::array(), left_out = Json::object();
  for (const auto& axis : set.axes)
    axes.push_back({{"key", axis.key}, {"values", axis.values}, {"spacing", axis.spacing}});
  std::size_t less_counters = 0;
  for (const auto& name : chosen_metrics(set, counters, less_counters)) metrics.push_back(metric_json(set, name));
  auto resources = resources_json(set, limits.resources, left_out);
  if (less_counters > 0) left_out["counters"] = less_counters;
  return {{"name", set.name},
          {"source", set.source},
          {"command", set.command},
          {"rnicsim", set.version},
          {"invocation", set.invocation},
          {"base",
           {{"workload", set.workload},
            {"nic", set.nic},
            {"extrapolated", std::vector<std::string>(set.extrapolated.begin(), set.extrapolated.end())},
            {"host", set.host},
            {"topology", set.topology},
            {"sets", set.settings},
            {"faults", set.faults}}},
          {"axes", std::move(axes)},
          {"seeds", set.seeds},
          {"points", points_json(set)},
          {"metrics", std::move(metrics)},
          {"resources", std::move(resources)},
          {"waterfalls", waterfalls_json(set)},
          {"configuration", configuration_json(set)},
          {"references", references_json(set)},
          {"left_out", std::move(left_out)}};
}

}  // namespace

Json page_data(const std::vector<ResultSet>& sets, const std::vector<std::string>& invocation,
               const PageLimits& limits) {
  std::size_t points = 0;
  for (const auto& set : sets) points += set.points.size();
  Json json = results_of_command("report");
  json["invocation"] = invocation;
  json["sets"] = Json::array();
  for (const auto& set : sets) json["sets"].push_back(set_json(set, limits.counter_cells / points, limits));
  return json;
}

}  // namespace rnicsim::sim::report
