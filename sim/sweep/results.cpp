// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "sim/config/config_error.h"
#include "sim/results/results_json.h"

namespace rnicsim::sim::sweep {
namespace {

struct FlowMetric {
  const char* name;
  const char* unit;
  const char* pointer;  // JSON pointer into a flow's results
  bool of_all = true;   // false: only flows of some transports have this metric
};
constexpr FlowMetric kFlowMetrics[] = {
    {"rate_per_s", "op/s", "/rate_per_s"},
    {"goodput_bits_per_s", "b/s", "/goodput_bits_per_s"},
    {"latency_ps.mean", "ps", "/latency_ps/mean"},
    {"latency_ps.p50", "ps", "/latency_ps/p50"},
    {"latency_ps.p99", "ps", "/latency_ps/p99"},
    {"latency_ps.p99.9", "ps", "/latency_ps/p99.9"},
    {"latency_ps.max", "ps", "/latency_ps/max"},
    {"received.rate_per_s", "frame/s", "/received/rate_per_s", false},
    {"fairness.jain", "of 1", "/fairness/jain", false},
};

// Confidence interval of one run, from batch means.
struct OwnInterval {
  double low, high;
};

struct Metric {
  std::string name;
  std::string unit;
  double value;
  std::optional<OwnInterval> own{};
};

std::optional<OwnInterval> own_interval(const Json& flow) {
  const auto interval = flow.value("rate_interval", Json());
  if (!interval.is_object()) return std::nullopt;
  return OwnInterval{interval.at("low").get<double>(), interval.at("high").get<double>()};
}

// Finds a counter by "h0.nic.contexts.qpc.hit_rate"; nullptr: none.
const Json* counter_of(const Json& results, const std::string& path) {
  const auto dot = path.find('.');
  if (dot == path.npos) return nullptr;
  const auto host = path.substr(0, dot), counter = path.substr(dot + 1);
  for (const char* devices : {"hosts", "switches"}) {
    if (!results.contains(devices) || !results[devices].contains(host)) continue;
    for (const char* kind : {"counters", "derived"}) {
      const auto& of_kind = results[devices][host].at(kind);
      if (of_kind.contains(counter)) return &of_kind[counter];
    }
  }
  return nullptr;
}

std::vector<Metric> metrics_of(const Json& results, const std::vector<std::string>& more) {
  std::vector<Metric> metrics;
  const auto& flows = results.at("flows");
  for (std::size_t i = 0; i < flows.size(); ++i)
    for (const auto& metric : kFlowMetrics) {
      const std::string_view pointer = metric.pointer;
      const Json* value = flows[i].find_pointer(pointer);
      if (value == nullptr && !metric.of_all) continue;
      if (value == nullptr) throw JsonError(fmt::format("the flow has no {}", pointer));
      // Fairness needs at least two senders.
      if (pointer.ends_with("/jain") && flows[i]["fairness"]["senders"] == Json(1)) continue;
      if (!value->is_null())  // null: unknown
        metrics.push_back({fmt::format("flow[{}].{}", i, metric.name), metric.unit, value->get<double>()});
      if (pointer.ends_with("/rate_per_s") && metric.of_all) metrics.back().own = own_interval(flows[i]);
    }
  // The work of a recording is fixed, so its duration measures the NIC.
  if (results.contains("recording")) metrics.push_back({"duration_ps", "ps", results.at("end_ps").get<double>()});
  for (const auto& path : more)
    if (const auto* value = counter_of(results, path); value != nullptr && value->is_number())
      metrics.push_back({path, "", value->get<double>()});
  return metrics;
}

// Equal runs, or a single run, give no interval over the seeds: then the run's own interval is used, if it has one.
Json interval_json(const std::vector<double>& samples, const std::string& unit, bool equal_runs,
                   const std::optional<OwnInterval>& own) {
  const auto interval = interval_of(samples);
  Json json{{"mean", interval.mean}, {"low", nullptr}, {"high", nullptr}, {"n", interval.count}, {"unit", unit}};
  const bool by_seeds = samples.size() > 1 && !equal_runs;
  if (by_seeds || own) {
    json["low"] = by_seeds ? interval.low : own->low;
    json["high"] = by_seeds ? interval.high : own->high;
    json["by"] = by_seeds ? "seeds" : "batches";
  }
  return json;
}

// True: a spreadsheet would take the text for a formula. A signed number is no formula.
bool looks_like_a_formula(const std::string& text) {
  if (text.find_first_of("=+-@\t") != 0) return false;
  double number = 0;
  const char* end = text.data() + text.size();
  return std::from_chars(text.data(), end, number).ptr != end;
}

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == text.npos && !looks_like_a_formula(text)) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  return quoted + '"';
}

struct Line {
  std::vector<std::string> place;
  std::uint64_t seed;
  std::string status;
  std::map<std::string, double> values;
  std::string steady{};  // "true", "false"; empty: unknown
  std::string limit{};
};

std::string csv_of(const SweepPlan& plan, const std::vector<std::string>& columns, const std::vector<Line>& lines) {
  std::string text = "point";
  for (const auto& axis : plan.axes) text += ',' + csv_text(axis.key);
  text += ",seed,status";
  for (const auto& column : columns) text += ',' + csv_text(column);
  text += ",steady,limited by\n";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& line = lines[i];
    text += fmt::format("{}", i / plan.seeds.size());
    for (const auto& value : line.place) text += ',' + csv_text(value);
    text += fmt::format(",{},{}", line.seed, line.status);
    for (const auto& column : columns) {
      const auto found = line.values.find(column);
      text += found == line.values.end() ? "," : fmt::format(",{:.12g}", found->second);
    }
    text += fmt::format(",{},{}\n", line.steady, csv_text(line.limit));
  }
  return text;
}

class Collector {
 public:
  explicit Collector(const Store& store) : store_(store), plan_(store.plan()) {}

  SweepResults collect() {
    SweepResults results;
    results.json = results_of_command("sweep");
    results.json["invocation"] = store_.invocation();
    results.json.update(plan_json(plan_));
    results.json["points"] = Json::array();
    for (std::size_t point = 0; point < plan_.points(); ++point) results.json["points"].push_back(point_json(point));
    results.csv = csv_of(plan_, columns_, lines_);
    results.tally = tally_;
    if (tally_.done > 0)
      std::ranges::copy_if(plan_.metrics, std::back_inserter(results.unknown),
                           [&](const auto& metric) { return !known_.contains(metric); });
    return results;
  }

 private:
  Json point_json(std::size_t point) {
    const auto place = plan_.place_of(point);
    Json values = Json::object();
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < place.size(); ++i) {
      texts.push_back(plan_.axes[i].values[place[i]]);
      values[plan_.axes[i].key] = texts.back();
    }
    Json json = {{"number", point}, {"values", values}, {"runs", Json::array()}};
    samples_.clear();
    own_.clear();
    limit_ = nullptr;
    first_ = nullptr;
    equal_ = 0;
    const auto done_before = tally_.done;
    for (const auto seed : plan_.seeds) json["runs"].push_back(run_json({point, seed}, texts));
    done_ = tally_.done - done_before;
    json["metrics"] = Json::object();
    for (const auto& column : columns_)
      if (const auto found = samples_.find(column); found != samples_.end())
        json["metrics"][column] = interval_json(found->second, units_[column], equal_ + 1 == done_,
                                                own_.contains(column) ? own_[column] : std::nullopt);
    if (!limit_.is_null()) json["limit"] = limit_;
    if (done_ > 1 && equal_ + 1 == done_) {
      json["equal_runs"] = true;
      ++tally_.equal;
    }
    return json;
  }

  Json run_json(const Run& run, const std::vector<std::string>& place) {
    Line line{place, run.seed, "missing", {}};
    Json json = {{"seed", run.seed}};
    if (store_.done(run)) {
      line.status = "done";
      ++tally_.done;
      take(run, line);
      json["file"] = Store::file_of(run);
    } else if (const auto why = store_.failure(run)) {
      line.status = "failed";
      ++tally_.failed;
      json["error"] = *why;
    } else {
      ++tally_.missing;
    }
    json["status"] = line.status;
    lines_.push_back(std::move(line));
    return json;
  }

  void take(const Run& run, Line& line) {
    auto results = store_.results(run);
    std::vector<Metric> metrics;
    try {
      metrics = metrics_of(results, plan_.metrics);
      for (const auto& path : plan_.metrics)
        if (counter_of(results, path) != nullptr) known_.insert(path);
    } catch (const JsonError&) {
      throw ConfigError(fmt::format("{}: not results of `bench`", (store_.folder() / Store::file_of(run)).string()));
    }
    for (const auto& metric : metrics) {
      if (units_.emplace(metric.name, metric.unit).second) columns_.push_back(metric.name);
      samples_[metric.name].push_back(metric.value);
      line.values[metric.name] = metric.value;
      own_.try_emplace(metric.name, metric.own);
      if (metric.own && metric.name.ends_with(".rate_per_s")) put_own_interval(metric, line);
    }
    if (results.contains("limit")) {
      line.limit = results["limit"].value("text", "");
      if (limit_.is_null()) limit_ = results["limit"];
    }
    if (results.contains("steady") && results["steady"].is_boolean())
      line.steady = results["steady"].get<bool>() ? "true" : "false";
    compare(std::move(results));
  }

  // Own intervals appear only in the table, as columns beside the rate.
  void put_own_interval(const Metric& metric, Line& line) {
    const auto stem = metric.name.substr(0, metric.name.rfind('.'));
    for (const auto& [side, value] : {std::pair("low", metric.own->low), std::pair("high", metric.own->high)}) {
      const auto column = fmt::format("{}.rate_interval.{}", stem, side);
      if (own_columns_.insert(column).second) columns_.push_back(column);
      line.values[column] = value;
    }
  }

  // Compares with the first completed run of the point.
  void compare(Json results) {
    for (const char* key : {"seed", "crc32"}) results.erase(key);
    if (first_.is_null())
      first_ = std::move(results);
    else if (results == first_)
      ++equal_;
  }

  const Store& store_;
  const SweepPlan& plan_;
  std::set<std::string> own_columns_;  // names in columns_ that are no metric
  std::vector<std::string> columns_;   // in the order of first appearance
  std::map<std::string, std::string> units_;
  std::set<std::string> known_;  // metrics of the plan that some run has
  std::vector<Line> lines_;
  std::map<std::string, std::vector<double>> samples_;     // of the present point, by metric
  std::map<std::string, std::optional<OwnInterval>> own_;  // of the present point's first run, by metric
  Json limit_;
  Json first_;             // results of the present point's first completed run, without the seed
  std::size_t equal_ = 0;  // number of further runs with equal results
  std::size_t done_ = 0;
  Tally tally_;
};

}  // namespace

SweepResults results_of(const Store& store) { return Collector(store).collect(); }

}  // namespace rnicsim::sim::sweep
