// SPDX-License-Identifier: Apache-2.0
#include "sim/report/run_results.h"

#include <fmt/format.h>

#include <string_view>

#include "sim/results/results_json.h"

namespace rnicsim::sim::report {
namespace {

constexpr std::string_view kBusyShare = "_busy_share";

std::string unit_of(std::string_view path) {
  if (path.ends_with("_share") || path.ends_with("_hit_rate") || path.ends_with(".hit_rate")) return "of 1";
  if (path.ends_with("_bytes_rate") || path.ends_with(".bytes_rate")) return "b/s";
  if (path.ends_with("bytes")) return "bytes";
  if (path.ends_with("_time") || path.ends_with("_busy")) return "ps";
  return "";
}

void read_flow(const Field& flow, const std::string& name, RunResults& run) {
  const auto metric = [&](const std::string& key, const Field& value, const char* unit) {
    if (!value.exists()) return;
    run.flow_metrics[name + "." + key] = value.number();
    run.units[name + "." + key] = unit;
  };
  metric("rate_per_s", flow["rate_per_s"], "op/s");
  if (const auto interval = flow["rate_interval"]; interval.is_object())
    run.own_intervals[name + ".rate_per_s"] = {interval["low"].number(), interval["high"].number()};
  metric("goodput_bits_per_s", flow["goodput_bits_per_s"], "b/s");
  metric("received.rate_per_s", flow["received"]["rate_per_s"], "frame/s");
  if (flow["fairness"]["senders"].exists() && flow["fairness"]["senders"].count() > 1)
    metric("fairness.jain", flow["fairness"]["jain"], "of 1");
  for (const auto key : {"mean", "p50", "p99", "p99.9", "max"})
    metric(fmt::format("latency_ps.{}", key), flow["latency_ps"][key], "ps");
  flow["parameters"].for_each(
      [&](const std::string& key, const Field& value) { run.configuration[name + "." + key] = value.shown(); });
}

void read_block(const Field& block, const std::string& name, RunResults& run) {
  for (const auto part : {"counters", "derived"})
    block[part].for_each([&](const std::string& path, const Field& value) {
      if (!value.exists() || path.ends_with("_busy")) return;  // null, or busy time, whose share is listed too
      run.counters[name + "." + path] = value.number();
      run.units[name + "." + path] = unit_of(path);
    });
}

// `run` writes no utilization; part of it follows from the counters.
void read_uses(const Field& results, RunResults& run) {
  results["utilization"].for_each([&](const Field& entry) {
    run.uses[{entry["host"].text(), entry["resource"].text()}] = {entry["use"].number(), entry["queue"].number_if_any(),
                                                                  entry["growth"].number_if_any()};
  });
  if (!results["utilization"].exists())
    results["hosts"].for_each([&](const std::string& host, const Field& block) {
      block["derived"].for_each([&](const std::string& path, const Field& value) {
        if (!path.ends_with(kBusyShare) || !value.exists()) return;
        run.uses[{host, path.substr(0, path.size() - kBusyShare.size())}] = {.share = value.number()};
      });
    });
}

Stages read_stages(const Field& operation) {
  Stages stages{.operation = operation["operation"].text(),
                .one_way = operation["one_way"].flag_or(false),
                .work_requests = operation["work_requests"].number(),
                .latency_ps = operation["latency"]["sum_ps"].number()};
  operation["stages"].for_each([&](const std::string& name, const Field& spread) {
    stages.stage_ps.emplace_back(name, spread["sum_ps"].number());
  });
  return stages;
}

// `run` writes a name, `bench` an object with the file.
std::string name_of(const Field& field) { return field.is_object() ? field["file"].text_or("") : field.text_or(""); }

std::string without_ending(std::string name) {
  if (name.ends_with(".toml")) name.resize(name.size() - std::string_view(".toml").size());
  return name;
}

}  // namespace

std::optional<Limit> read_limit(const Field& field) {
  if (!field.exists()) return std::nullopt;
  const Resource resource{field["host"].text_or(""), field["resource"].text()};
  const Use use{field["use"].number(), field["queue"].number_if_any(), field["growth"].number_if_any()};
  return Limit{resource, use, field["text"].text_or("")};
}

void check_schema(const Field& results) {
  if (!results.is_object() || !results["schema"].exists())
    results.refuse("not results of rnicsim: no schema in the file");
  const auto schema = results["schema"].count();
  if (schema != kResultsSchema)
    results.refuse(fmt::format("results of schema {}; this rnicsim reads schema {}", schema, kResultsSchema));
}

RunResults read_run(const Field& results) {
  check_schema(results);
  RunResults run;
  run.command = results["command"].text();
  const bool is_recording = run.command == "replay" && results["recording"].exists();
  if (run.command != "bench" && run.command != "run" && !is_recording)
    results.refuse(
        run.command == "sweep"
            ? "results of a sweep: give the folder of the sweep"
            : fmt::format("results of `{}`: a report needs results of sweep, bench, run or replay", run.command));
  run.version = results["rnicsim"].text_or("");
  run.workload = without_ending(name_of(results[is_recording ? "recording" : "workload"]));
  run.nic = without_ending(name_of(results["nic"]));
  run.extrapolated = results["extrapolated"].exists();
  run.host = results["host"].text_or("");
  run.topology = results["topology"].text_or("");
  run.seed = results["seed"].exists() ? results["seed"].count() : 0;
  results["parameters"].for_each(
      [&](const std::string& key, const Field& value) { run.configuration[key] = value.shown(); });
  if (results["faults"].size() > 0) run.configuration["faults"] = results["faults"].shown();
  for (std::size_t i = 0; i < results["flows"].size(); ++i)
    read_flow(results["flows"][i], fmt::format("flow[{}]", i), run);
  if (is_recording) {
    run.flow_metrics["duration_ps"] = results["end_ps"].number();
    run.units["duration_ps"] = "ps";
  }
  for (const auto part : {"hosts", "switches"})
    results[part].for_each([&](const std::string& name, const Field& block) { read_block(block, name, run); });
  read_uses(results, run);
  run.limit = read_limit(results["limit"]);
  results["waterfall"]["operations"].for_each(
      [&](const Field& operation) { run.waterfall.push_back(read_stages(operation)); });
  return run;
}

}  // namespace rnicsim::sim::report
