#include "sim/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/config/config_error.h"
#include "sim/config/param_list.h"
#include "sim/counter_list.h"

namespace rnicsim::sim {
namespace {

std::vector<CounterList> counters_of(const System& system) {
  std::vector<CounterList> lists;
  for (std::size_t i = 0; i < system.size(); ++i) lists.emplace_back(system.counters(i));
  return lists;
}

nlohmann::ordered_json parameters_json(const System& system) {
  Config config = system.config();
  nlohmann::ordered_json parameters;
  const ParamList list(config);
  for (const auto& entry : list.entries()) parameters[entry.path] = entry.value_text();
  return parameters;
}

}  // namespace

int RunOutcome::worst_status() const {
  int worst = 0;
  for (const auto& program : programs) worst = std::max(worst, program.exit_status);
  return worst;
}

std::string summary_text(const System& system, const RunOutcome& outcome) {
  const auto& engine = system.config().engine;
  std::string text = fmt::format("--- {} simulated{}\n", to_string(outcome.end),
                                 engine.is_model() ? "" : ", engine " + engine.kind);
  for (const auto& warning : outcome.warnings) text += fmt::format("    {}\n", warning);
  for (const auto& program : outcome.programs)
    if (program.exit_status != 0)
      text += fmt::format("    {}: {} ended with status {}\n", program.host, program.argv.front(), program.exit_status);

  const auto lists = counters_of(system);
  std::size_t width = 0;
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < lists.front().entries().size(); ++row) {
    if (std::ranges::none_of(lists, [&](const auto& list) { return list.entries()[row].value != 0; })) continue;
    rows.push_back(row);
    width = std::max(width, lists.front().entries()[row].path.size());
  }
  text += fmt::format("    {:<{}}", "", width);
  for (std::size_t i = 0; i < lists.size(); ++i) text += fmt::format(" {:>14}", system.host(i).entry().name);
  text += '\n';
  for (const auto row : rows) {
    const auto& first = lists.front().entries()[row];
    text += fmt::format("    {:<{}}", first.path, width);
    for (const auto& list : lists) text += fmt::format(" {:>14}", list.entries()[row].value);
    text += fmt::format("  {}\n", first.unit);
  }
  if (outcome.waterfall) text += waterfall_text(*outcome.waterfall);
  return text;
}

void write_results(const std::filesystem::path& path, const System& system, const RunOptions& options,
                   const RunOutcome& outcome) {
  nlohmann::ordered_json results;
  results["nic"] = options.nic;
  results["topology"] = options.topology;
  results["seed"] = options.seed;
  results["time"] = options.time == TimeMode::simulated ? "sim" : "real";
  results["end_ps"] = outcome.end.ps;
  results["warnings"] = outcome.warnings;
  results["programs"] = nlohmann::ordered_json::array();
  for (const auto& program : outcome.programs)
    results["programs"].push_back(
        {{"host", program.host}, {"argv", program.argv}, {"exit_status", program.exit_status}});
  const auto lists = counters_of(system);
  for (std::size_t i = 0; i < lists.size(); ++i)
    for (const auto& entry : lists[i].entries())
      results["counters"][system.host(i).entry().name][entry.path] = entry.value;
  if (outcome.waterfall) results["waterfall"] = waterfall_json(*outcome.waterfall);
  results["parameters"] = parameters_json(system);
  results["faults"] = nlohmann::ordered_json::array();
  for (const auto& fault : system.config().faults) results["faults"].push_back(fault_text(fault));

  std::ofstream out(path);
  // What a program's arguments hold need not be UTF-8.
  out << results.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
  if (!out.flush()) throw ConfigError(fmt::format("{}: cannot be written", path.string()));
}

}  // namespace rnicsim::sim
