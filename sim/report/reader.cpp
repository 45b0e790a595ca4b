// SPDX-License-Identifier: Apache-2.0
#include "sim/report/reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/config/config_error.h"
#include "sim/report/json_field.h"
#include "sim/report/run_results.h"
#include "sim/sweep/results.h"

namespace rnicsim::sim::report {
namespace {

namespace fs = std::filesystem;

// Combines the runs of all seeds of a point.
class Together {
 public:
  void add(RunResults run) {
    if (runs_++ == 0) {
      configuration_ = std::move(run.configuration);
      limit_ = std::move(run.limit);
      own_intervals_ = std::move(run.own_intervals);
    }
    for (const auto* values : {&run.flow_metrics, &run.counters})
      for (const auto& [name, value] : *values) values_[name].push_back(value);
    units_.merge(run.units);
    for (const auto& [resource, use] : run.uses) uses_[resource].push_back(use);
    for (auto& stages : run.waterfall) add(std::move(stages));
  }

  void finish(ResultSet& set, Point& point) && {
    for (const auto& [name, values] : values_) point.metrics.try_emplace(name, sweep::interval_of(values));
    for (const auto& [name, own] : own_intervals_)
      if (runs_ == 1 || point.equal_runs) {
        point.metrics[name].low = own.first;
        point.metrics[name].high = own.second;
      }
    for (const auto& [name, unit] : units_) set.units[name] = unit;
    for (const auto& [resource, uses] : uses_) {
      double share = 0;  // a run without this resource counts as 0
      for (const auto& use : uses) share += use.share;
      point.uses[resource] = {share / static_cast<double>(runs_), mean(uses, &Use::queue), mean(uses, &Use::growth)};
    }
    point.waterfall = std::move(waterfall_);
    point.configuration = std::move(configuration_);
    if (!point.limit) point.limit = std::move(limit_);
  }

 private:
  static std::optional<double> mean(const std::vector<Use>& uses, std::optional<double> Use::*member) {
    double sum = 0;
    for (const auto& use : uses) {
      if (!(use.*member)) return std::nullopt;
      sum += *(use.*member);
    }
    return sum / static_cast<double>(uses.size());
  }

  // All runs have the same stages.
  void add(Stages stages) {
    const auto same = [&](const Stages& other) {
      return other.operation == stages.operation && other.one_way == stages.one_way &&
             other.stage_ps.size() == stages.stage_ps.size();
    };
    const auto found = std::ranges::find_if(waterfall_, same);
    if (found == waterfall_.end()) return void(waterfall_.push_back(std::move(stages)));
    found->work_requests += stages.work_requests;
    found->latency_ps += stages.latency_ps;
    for (std::size_t i = 0; i < stages.stage_ps.size(); ++i) found->stage_ps[i].second += stages.stage_ps[i].second;
  }

  std::size_t runs_ = 0;
  std::map<std::string, std::vector<double>> values_;
  std::map<std::string, std::pair<double, double>> own_intervals_;  // of the point's first run, by metric
  std::map<std::string, std::string> units_, configuration_;
  std::map<Resource, std::vector<Use>> uses_;
  std::vector<Stages> waterfall_;
  std::optional<Limit> limit_;
};

std::vector<std::string> texts(const Field& list) {
  std::vector<std::string> result;
  list.for_each([&](const Field& item) { result.push_back(item.shown()); });
  return result;
}

Axis read_axis(const Field& field) {
  return {field["key"].text(), texts(field["values"]), field["spacing"].text_or("list")};
}

Run read_status(const Field& field) {
  Run run{.seed = field["seed"].count(), .error = field["error"].text_or("")};
  const auto status = field["status"].text();
  if (status != "done" && status != "failed" && status != "missing")
    field["status"].refuse("is none of done, failed and missing");
  run.status = status == "done" ? Run::Status::done : status == "failed" ? Run::Status::failed : Run::Status::missing;
  return run;
}

// The file must be inside the folder: another path would mean something else on another machine.
fs::path file_of(const fs::path& folder, const Field& field) {
  const fs::path name = field.text();
  if (name.empty() || name.is_absolute() || std::ranges::find(name, "..") != name.end())
    field.refuse("is not a file of the folder");
  return folder / name;
}

// A metric without a mean has no value: no seed measured it.
void read_metric(const std::string& name, const Field& field, ResultSet& set, Point& point) {
  set.units.emplace(name, field["unit"].text_or(""));
  if (!field["mean"].exists()) return;
  const double mean = field["mean"].number();
  point.metrics[name] = {mean, field["low"].number_or(mean), field["high"].number_or(mean),
                         field["n"].exists() ? field["n"].count() : 1};
}

Point read_point(const fs::path& folder, const Field& field, ResultSet& set) {
  Point point{.number = field["number"].count()};
  for (const auto& axis : set.axes) {
    if (!field["values"][axis.key].exists()) field["values"].refuse(fmt::format("has none for {}", shown(axis.key)));
    point.values.push_back(field["values"][axis.key].shown());
  }
  field["metrics"].for_each(
      [&](const std::string& name, const Field& metric) { read_metric(name, metric, set, point); });
  point.limit = read_limit(field["limit"]);
  point.equal_runs = field["equal_runs"].flag_or(false);
  Together together;
  field["runs"].for_each([&](const Field& entry) {
    point.runs.push_back(read_status(entry));
    if (point.runs.back().status != Run::Status::done) return;
    const auto file = file_of(folder, entry["file"]);
    const Json json = read_json(file);
    RunResults run = read_run(Field(file, json));
    // The sweep's own file contains only the settings that it changes.
    if (set.nic.empty()) set.nic = run.nic;
    if (run.extrapolated) set.extrapolated.insert(run.nic);
    if (set.host.empty()) set.host = run.host;
    if (set.topology.empty()) set.topology = run.topology;
    together.add(std::move(run));
  });
  if (point.runs.empty()) field["runs"].refuse("names no run");
  std::move(together).finish(set, point);
  return point;
}

// A reference needs a number to be shown.
void read_references(const Field& references, ResultSet& set) {
  references.for_each([&](const Field& field) {
    Reference reference{field["label"].text(), field["key"].text(), {}, field["value"].number()};
    field["x"].for_each([&](const std::string& key, const Field& value) { reference.at[key] = value.shown(); });
    set.references.push_back(std::move(reference));
  });
}

ResultSet read_sweep(const fs::path& folder) {
  const auto file = folder / "results.json";
  std::error_code none;
  const bool is_over = fs::exists(file, none);
  if (!is_over && !fs::exists(folder / "plan.json", none))
    throw ConfigError(
        fmt::format("{}: no results.json: did `rnicsim sweep` write this folder?", shown(folder.string())));
  // A sweep that still runs or was killed: collect the results so far.
  const Json json = is_over ? read_json(file) : sweep::results_of(sweep::Store(folder)).json;
  const Field results(file, json);
  check_schema(results);
  if (results["command"].text() != "sweep") results["command"].refuse("is not sweep");
  ResultSet set{.name = results["name"].text_or(""),
                .source = folder.string(),
                .command = "sweep",
                .version = results["rnicsim"].text_or(""),
                .invocation = texts(results["invocation"]),
                .workload = results["base"]["workload"].text_or(results["base"]["recording"].text_or("")),
                .nic = results["base"]["nic"].text_or(""),
                .host = results["base"]["host"].text_or(""),
                .topology = results["base"]["topology"].text_or(""),
                .settings = texts(results["base"]["sets"]),
                .faults = texts(results["base"]["faults"])};
  results["axes"].for_each([&](const Field& axis) { set.axes.push_back(read_axis(axis)); });
  results["seeds"].for_each([&](const Field& seed) { set.seeds.push_back(seed.count()); });
  results["points"].for_each([&](const Field& point) { set.points.push_back(read_point(folder, point, set)); });
  if (set.points.empty()) results["points"].refuse("has none");
  read_references(results["references"], set);
  if (set.name.empty()) set.name = fs::weakly_canonical(folder, none).filename().string();
  return set;
}

ResultSet read_single(const fs::path& file) {
  const Json json = read_json(file);
  RunResults run = read_run(Field(file, json));
  ResultSet set{.name = file.stem().string(),
                .source = file.string(),
                .command = run.command,
                .version = run.version,
                .workload = run.workload,
                .nic = run.nic,
                .host = run.host,
                .topology = run.topology,
                .seeds = {run.seed}};
  if (run.extrapolated) set.extrapolated.insert(run.nic);
  Point point{.runs = {{.seed = run.seed, .status = Run::Status::done}}};
  Together together;
  together.add(std::move(run));
  std::move(together).finish(set, point);
  set.points.push_back(std::move(point));
  return set;
}

}  // namespace

ResultSet read_results(const fs::path& path) {
  std::error_code error;
  const auto type = fs::status(path, error).type();
  if (type == fs::file_type::not_found) throw ConfigError(fmt::format("{}: no such file", shown(path.string())));
  return type == fs::file_type::directory ? read_sweep(path) : read_single(path);
}

}  // namespace rnicsim::sim::report
