// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/fabric/port_histograms.h"
#include "sim/adapter.h"
#include "sim/adapter_counters.h"
#include "sim/config/config.h"
#include "sim/config/param_list.h"
#include "sim/config/profiles/profile_notes.h"
#include "sim/results/counter_results.h"
#include "sim/results/results_json.h"
#include "sim/switch_histograms.h"

namespace rnicsim::sim {
namespace {

using Results = std::vector<CounterResult>;

// Rates are left out: averaged over the programs' set-up, too, they say little.
bool is_told(const CounterResult& result) {
  return result.kind == CounterResult::Kind::growth || result.kind == CounterResult::Kind::hit_rate;
}

template <class Counters>
Results results_of(const Counters& counters, Duration end) {
  auto results = counter_results(CounterList(Counters{}), CounterList(counters), end);
  std::erase_if(results, [](const auto& result) { return !is_told(result); });
  return results;
}

std::string number_text(const CounterResult& result) {
  if (!result.known) return "-";
  return result.derived() ? fmt::format("{:.4f}", result.value) : fmt::format("{:.0f}", result.value);
}

std::vector<std::size_t> simulated_adapters(const System& system) {
  std::vector<std::size_t> adapters;
  for (std::size_t i = 0; i < system.adapters(); ++i)
    if (!system.is_outside(system.adapter(i).interface().host)) adapters.push_back(i);
  return adapters;
}

// All simulated adapters; if there are more than kMost, the first ones whose hosts had programs.
std::vector<std::size_t> shown_adapters(const System& system, const RunOutcome& outcome) {
  constexpr std::size_t kMost = 64;
  const auto all = simulated_adapters(system);
  if (all.size() <= kMost) return all;
  std::vector<std::size_t> shown;
  for (const auto i : all) {
    const auto has_name = [&](const auto& program) { return program.host == system.adapter(i).interface().name; };
    if (shown.size() < kMost && std::ranges::any_of(outcome.programs, has_name)) shown.push_back(i);
  }
  if (shown.empty()) shown.push_back(all.front());
  return shown;
}

// A row for each counter, a column for each adapter.
std::string hosts_table(const System& system, const RunOutcome& outcome) {
  const auto shown = shown_adapters(system, outcome);
  std::vector<Results> columns;
  for (const auto i : shown) columns.push_back(results_of(system.counters(i), outcome.end));
  std::size_t width = 0;
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < columns.front().size(); ++row) {
    if (std::ranges::none_of(columns, [&](const auto& column) { return column[row].tells(); })) continue;
    rows.push_back(row);
    width = std::max(width, columns.front()[row].path.size());
  }
  std::string text = fmt::format("    {:<{}}", "", width);
  for (const auto i : shown) text += fmt::format(" {:>14}", system.adapter(i).label());
  if (const auto all = simulated_adapters(system).size(); shown.size() < all)
    text += fmt::format("  ({} more in the JSON)", all - shown.size());
  text += '\n';
  for (const auto row : rows) {
    const auto& first = columns.front()[row];
    text += fmt::format("    {:<{}}", first.path, width);
    for (const auto& column : columns) text += fmt::format(" {:>14}", number_text(column[row]));
    text += fmt::format("  {}\n", first.unit);
  }
  return text;
}

std::string switches_text(const System& system, Duration end) {
  std::string text;
  for (std::size_t i = 0; i < system.switches(); ++i)
    for (const auto& result : results_of(system.switch_counters(i), end))
      if (result.tells())
        text += fmt::format("    {}: {} {} {}\n", system.config().topology.switches[i], result.path,
                            number_text(result), result.unit);
  return text;
}

Json switch_json(const System& system, std::size_t box, Duration end) {
  auto json = counters_json(results_of(system.switch_counters(box), end));
  if (const auto histograms = system.switch_histograms(box); !histograms.empty())
    json["histograms"] = histograms_json(system.config().topology.port_names(box), histograms);
  return json;
}

}  // namespace

int RunOutcome::worst_status() const {
  int worst = 0;
  for (const auto& program : programs) worst = std::max(worst, program.exit_status);
  return worst;
}

std::string summary_text(const System& system, const RunOutcome& outcome) {
  const auto engines = engines_text(system.config());
  std::string text =
      fmt::format("--- {} simulated{}\n", to_string(outcome.end), engines.empty() ? "" : ", engine " + engines);
  for (const auto& warning : outcome.warnings) text += fmt::format("    {}\n", warning);
  for (const auto& program : outcome.programs)
    if (program.exit_status != 0)
      text += fmt::format("    {}: {} ended with status {}\n", program.host, program.argv.front(), program.exit_status);

  text += hosts_table(system, outcome) + switches_text(system, outcome.end);
  if (outcome.waterfall) text += waterfall_text(*outcome.waterfall);
  return text;
}

Json results_json(const System& system, const RunOptions& options, const RunOutcome& outcome) {
  auto results = results_of_command("run");
  results["nic"] = options.nic;
  if (is_extrapolated(options.nic)) results["extrapolated"] = true;
  results["host"] = system.config().host_profile;
  results["topology"] = options.topology;
  results["seed"] = options.seed;
  results["time"] = options.time == TimeMode::real ? "real" : "sim";
  results["end_ps"] = outcome.end.ps;
  results["warnings"] = outcome.warnings;
  results["programs"] = Json::array();
  for (const auto& program : outcome.programs)
    results["programs"].push_back(
        {{"host", program.host}, {"argv", program.argv}, {"exit_status", program.exit_status}});
  for (std::size_t i = 0; i < system.adapters(); ++i)
    results["hosts"][system.adapter(i).label()] = counters_json(results_of(system.counters(i), outcome.end));
  for (std::size_t i = 0; i < system.switches(); ++i)
    results["switches"][system.config().topology.switches[i]] = switch_json(system, i, outcome.end);
  if (outcome.waterfall) results["waterfall"] = waterfall_json(*outcome.waterfall);
  results["parameters"] = parameters_json(system.config());
  results["faults"] = faults_json(system.config());
  return results;
}

}  // namespace rnicsim::sim
