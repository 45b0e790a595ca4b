// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "sim/bench/bench.h"
#include "sim/config/config_error.h"
#include "sim/config/toml_file.h"
#include "sim/rerun/rerun.h"

namespace rnicsim::sim::sweep {
namespace {

constexpr std::size_t kMostRuns = 1'000'000;
constexpr std::string_view kSeed = "seed";

Json axis_json(const Axis& axis) {
  return {{"key", axis.key}, {"values", axis.values}, {"spacing", to_string(axis.spacing)}};
}

Axis axis_of(const Json& json) {
  Axis axis{json.at("key").get<std::string>(), json.at("values").get<std::vector<std::string>>(), Spacing::list};
  for (const auto spacing : {Spacing::linear, Spacing::geometric})
    if (json.at("spacing") == to_string(spacing)) axis.spacing = spacing;
  return axis;
}

Json reference_json(const Reference& reference) {
  Json at = Json::object();
  for (const auto& [key, value] : reference.at) at[key] = value;
  return {{"label", reference.label}, {"key", reference.metric}, {"x", at}, {"value", reference.value}};
}

Reference reference_of(const Json& json) {
  Reference reference{
      json.at("label").get<std::string>(), json.at("key").get<std::string>(), {}, json.at("value").get<double>()};
  for (const auto& [key, value] : json.at("x").items()) reference.at.emplace_back(key, value.get<std::string>());
  return reference;
}

// True: both keys set a common parameter. flow.window means all flows, flow[0].window one flow.
bool overlap(const std::string& a, const std::string& b) {
  constexpr std::string_view kAll = "flow.", kOne = "flow[";
  if (a.starts_with(kOne) == b.starts_with(kOne)) return a == b;
  const auto& all = a.starts_with(kOne) ? b : a;
  const auto& one = a.starts_with(kOne) ? a : b;
  return all.starts_with(kAll) && one.substr(one.find('.') + 1) == all.substr(kAll.size());
}

bool names_file(std::string_view key) {
  return key == "workload" || key == "nic" || key == "host" || key == "topology";
}

// Refuses keys of a workload, and keys whose values the recording has.
void refuse_of_recording(const std::string& key) {
  if (key == "workload" || key == "topology" || key.starts_with("flow.") || key.starts_with("flow[") ||
      key.starts_with("measure."))
    throw ConfigError(fmt::format("{}: the recording already sets this value", key));
}

// ConfigError: the run is not possible.
void prepare_run(const SweepPlan& plan, const Run& run) {
  if (plan.is_of_recording())
    rerun::check(rerun_options_of(plan, run));
  else
    bench::prepare(options_of(plan, run));
}

}  // namespace

std::size_t SweepPlan::points() const {
  std::size_t points = 1;
  for (const auto& axis : axes) points = std::min(kMostRuns + 1, points * axis.values.size());
  return points;
}

std::vector<std::size_t> SweepPlan::place_of(std::size_t point) const {
  std::vector<std::size_t> place(axes.size());
  for (std::size_t i = axes.size(); i-- > 0; point /= axes[i].values.size()) place[i] = point % axes[i].values.size();
  return place;
}

void SweepPlan::check() const {
  if (runs() > kMostRuns) throw ConfigError(fmt::format("{}: more than {} runs", name, kMostRuns));
  const auto is_seed = [](const Axis& axis) { return axis.key == kSeed; };
  const auto sets_seed = [](const std::string& set) { return set.starts_with(std::string(kSeed) + '='); };
  if (std::ranges::any_of(axes, is_seed) || std::ranges::any_of(sets, sets_seed))
    throw ConfigError(fmt::format("{}: set the seeds of a sweep by its key `seeds` or by --seeds", kSeed));
  for (std::size_t i = 0; i < axes.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (overlap(axes[i].key, axes[j].key))
        throw ConfigError(fmt::format("{}: this key is varied twice", axes[i].key));
  std::string first;
  for (std::size_t point = 0; point < points(); ++point) {
    try {
      prepare_run(*this, {point, seeds.front()});
      return;
    } catch (const ConfigError& error) {
      if (first.empty()) first = error.what();
    }
  }
  throw ConfigError(first);
}

std::vector<std::filesystem::path> SweepPlan::files() const {
  const FilesRead read;
  // Values of other axes do not change the files, so one point for each set of names is enough. A point with an invalid
  // value may end before all files are read; then the next point with the same names is tried.
  std::set<std::vector<std::string>> known;
  for (std::size_t point = 0; point < points(); ++point) {
    std::vector<std::string> named;
    const auto place = place_of(point);
    for (std::size_t i = 0; i < place.size(); ++i)
      if (names_file(axes[i].key)) named.push_back(axes[i].values[place[i]]);
    if (known.contains(named)) continue;
    try {
      prepare_run(*this, {point, seeds.front()});
      known.insert(named);
    } catch (const ConfigError&) {}
  }
  auto paths = read.paths();
  // Leaves out the recording's configuration, a file without a name: it is part of the recording.
  if (is_of_recording()) {
    std::erase_if(paths, [](const auto& path) { return path.native().starts_with("/proc/self/fd/"); });
    paths.emplace_back(recording);
  }
  return paths;
}

Run run_of(const SweepPlan& plan, std::size_t run) {
  return {run / plan.seeds.size(), plan.seeds[run % plan.seeds.size()]};
}

bench::BenchOptions options_of(const SweepPlan& plan, const Run& run) {
  bench::BenchOptions options;
  options.workload = plan.workload;
  options.nic = plan.nic;
  options.host = plan.host;
  options.topology = plan.topology;
  options.sets = plan.sets;
  options.faults = plan.faults;
  options.engine.kind = plan.engine;
  options.seed = run.seed;
  options.observers.follow.waterfall = plan.waterfall;
  const auto place = plan.place_of(run.point);
  for (std::size_t i = 0; i < place.size(); ++i) {
    const auto& [key, values, spacing] = plan.axes[i];
    const auto& value = values[place[i]];
    if (key == "workload")
      options.workload = value;
    else if (key == "nic")
      options.nic = value;
    else if (key == "host")
      options.host = value;
    else if (key == "topology")
      options.topology = value;
    else if (key == "engine")
      options.engine.kind = value;
    else if (key == "fault")
      options.faults.push_back(value);
    else
      options.sets.push_back(fmt::format("{}={}", key, value));
  }
  return options;
}

rerun::RerunOptions rerun_options_of(const SweepPlan& plan, const Run& run) {
  rerun::RerunOptions options;
  options.trace = plan.recording;
  options.nic = plan.nic.value_or("");
  options.host = plan.host.value_or("");
  options.sets = plan.sets;
  options.faults = plan.faults;
  options.engine.kind = plan.engine;
  options.seed = run.seed;
  options.as_possible = true;
  for (const auto& set : plan.sets) refuse_of_recording(set.substr(0, set.find('=')));
  if (plan.topology) refuse_of_recording("topology");
  if (plan.waterfall) throw ConfigError("waterfall: the replay of a recording has no waterfall");
  const auto place = plan.place_of(run.point);
  for (std::size_t i = 0; i < place.size(); ++i) {
    const auto& [key, values, spacing] = plan.axes[i];
    const auto& value = values[place[i]];
    refuse_of_recording(key);
    if (key == "nic")
      options.nic = value;
    else if (key == "host")
      options.host = value;
    else if (key == "engine")
      options.engine.kind = value;
    else if (key == "fault")
      options.faults.push_back(value);
    else
      options.sets.push_back(fmt::format("{}={}", key, value));
  }
  return options;
}

Json plan_json(const SweepPlan& plan) {
  Json json;
  json["name"] = plan.name;
  if (plan.is_of_recording())
    json["base"] = {{"recording", plan.recording}};
  else
    json["base"] = {{"workload", plan.workload}};
  if (plan.nic) json["base"]["nic"] = *plan.nic;
  if (plan.host) json["base"]["host"] = *plan.host;
  if (plan.topology) json["base"]["topology"] = *plan.topology;
  json["base"]["sets"] = plan.sets;
  json["base"]["faults"] = plan.faults;
  if (!plan.engine.empty()) json["base"]["engine"] = plan.engine;
  json["base"]["waterfall"] = plan.waterfall;
  json["axes"] = Json::array();
  for (const auto& axis : plan.axes) json["axes"].push_back(axis_json(axis));
  json["seeds"] = plan.seeds;
  json["metrics"] = plan.metrics;
  json["references"] = Json::array();
  for (const auto& reference : plan.references) json["references"].push_back(reference_json(reference));
  return json;
}

SweepPlan plan_of(const Json& json) {
  SweepPlan plan;
  json.at("name").get_to(plan.name);
  const auto& base = json.at("base");
  if (base.contains("recording"))
    base.at("recording").get_to(plan.recording);
  else
    base.at("workload").get_to(plan.workload);
  if (base.contains("nic")) plan.nic = base.at("nic").get<std::string>();
  if (base.contains("host")) plan.host = base.at("host").get<std::string>();
  if (base.contains("topology")) plan.topology = base.at("topology").get<std::string>();
  base.at("sets").get_to(plan.sets);
  base.at("faults").get_to(plan.faults);
  if (base.contains("engine")) base.at("engine").get_to(plan.engine);
  base.at("waterfall").get_to(plan.waterfall);
  for (const auto& axis : json.at("axes")) plan.axes.push_back(axis_of(axis));
  json.at("seeds").get_to(plan.seeds);
  json.at("metrics").get_to(plan.metrics);
  for (const auto& reference : json.at("references")) plan.references.push_back(reference_of(reference));
  return plan;
}

}  // namespace rnicsim::sim::sweep
