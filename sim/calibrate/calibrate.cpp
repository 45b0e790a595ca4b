// SPDX-License-Identifier: Apache-2.0
#include "sim/calibrate/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "sim/calibrate/fit.h"
#include "sim/calibrate/fit_report.h"
#include "sim/calibrate/plots.h"
#include "sim/calibrate/row.h"
#include "sim/calibrate/sensitivity.h"
#include "sim/calibrate/verdict.h"
#include "sim/config/config_error.h"
#include "sim/config/data_files.h"
#include "sim/config/param_list.h"
#include "sim/config/profiles/profile_marks.h"
#include "sim/config/profiles/profile_notes.h"
#include "sim/results/json_output.h"

namespace rnicsim::sim::calibrate {
namespace {

namespace fs = std::filesystem;
std::string upper(std::string text) {
  for (auto& letter : text) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return text;
}

std::vector<Row> chosen_rows(const std::vector<std::string>& names) {
  auto rows = all_rows();
  for (const auto& name : names)
    if (std::ranges::find(rows, upper(name), &Row::id) == rows.end())
      throw ConfigError(
          fmt::format("there is no experiment '{}'; there are {} to {}", shown(name), rows.front().id, rows.back().id));
  if (!names.empty())
    std::erase_if(rows, [&](const Row& row) {
      return std::ranges::none_of(names, [&](const auto& name) { return upper(name) == row.id; });
    });
  return rows;
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  if (!out.flush()) throw ConfigError(fmt::format("{}: cannot be written", path.string()));
}

// Makes a part of a file name from a point's name, such as "308 QPs".
std::string slug(const std::string& text) {
  std::string name;
  for (const char letter : text)
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0)
      name += letter;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  return name;
}

void keep_points(const fs::path& folder, const Row& row, const std::vector<Json>& results) {
  std::string curve = "point,operations_per_s,goodput_bits_per_s,latency_mean_ns\n";
  const Measured measured(results);
  for (std::size_t i = 0; i < results.size(); ++i) {
    write_file(folder / fmt::format("{}-{}.json", row.id, slug(row.points[i].name)), results[i].dump(2) + '\n');
    curve += fmt::format("{},{:.0f},{:.0f},{:.3f}\n", row.points[i].name, measured.rate(i), measured.goodput(i),
                         measured.latency(i));
  }
  write_file(folder / (row.id + ".csv"), curve);
}

class Table {
 public:
  void heading() const { line("id", "what", "expected", "tolerance", "simulated", ""); }

  Verdict add(const Row& row, const Check& check, double simulated) {
    const auto verdict = verdict_on(check, simulated);
    auto text = std::string(text_of(verdict));
    if (verdict == Verdict::argued) text += " in " + check.argued;
    line(row.id, check.what, fmt::format("{:.4g}", check.expected), tolerance_text(check),
         fmt::format("{:.4g}{}{}", simulated, check.unit.empty() ? "" : " ", check.unit), text);
    json_.push_back({{"id", row.id},
                     {"setup", row.setup},
                     {"what", check.what},
                     {"expected", check.expected},
                     {"low", check.low},
                     {"high", check.high},
                     {"unit", check.unit},
                     {"simulated", simulated},
                     {"pass", is_within(verdict)},
                     {"verdict", text_of(verdict)}});
    return verdict;
  }
  const Json& json() const { return json_; }

 private:
  static void line(std::string_view id, std::string_view what, std::string_view expected, std::string_view allowed,
                   std::string_view simulated, std::string_view verdict) {
    fmt::print("{:<7} {:<44} {:>9} {:>14} {:>13}{}{}\n", id, what, expected, allowed, simulated,
               verdict.empty() ? "" : "  ", verdict);
  }

  Json json_ = Json::array();
};

// NIC and host of each point.
using Profiles = std::set<std::pair<std::string, std::string>>;

void add_profiles(const std::vector<Json>& results, Profiles& profiles) {
  for (const auto& result : results)
    profiles.emplace(fs::path(result.at("nic").at("file").get<std::string>()).stem().string(),
                     result.at("host").get<std::string>());
}

void print_sources(const Profiles& profiles) {
  fmt::print("\n{:<36} {:>12} {:>12} {:>13}\n", "values of the profiles", "measured (S)", "derived (D)",
             "estimated (E)");
  for (const auto& [nic, host] : profiles) {
    const auto counts = count_marks(marked_settings(nic, host));
    fmt::print("{:<36} {:>12} {:>12} {:>13}\n", fmt::format("{} on {}", nic_text(nic), host), counts[0], counts[1],
               counts[2]);
  }
}

int run_sensitivity(const CalibrateOptions& options, const std::vector<Row>& rows) {
  JsonOutput json(options.json);
  auto table = Json::array();
  for (const auto& row : rows) {
    fmt::print("{:<7} {}; each estimate 10% down and up\n", row.id, row.setup);
    for (auto& line : sensitivity_of(row, options.jobs)) table.push_back(std::move(line));
  }
  json.write(table);
  return 0;
}

void make_folder(const std::string& folder) {
  std::error_code error;
  if (!folder.empty() && !fs::create_directories(folder, error) && error)
    throw ConfigError(fmt::format("{}: {}", folder, error.message()));
}

// All experiments that were named must be of the NIC.
void check_rows(const CalibrateOptions& options, const NicRows& rows, const std::vector<Row>& chosen) {
  if (rows.rows().empty() && options.rows.empty())
    throw ConfigError(fmt::format("--fit: no experiment uses {}: nothing to fit", rows.nic()));
  for (const auto& row : chosen)
    if (!options.rows.empty() && std::ranges::none_of(rows.rows(), [&](const auto& of) { return of.row.id == row.id; }))
      throw ConfigError(fmt::format("--fit: {} is not an experiment of {}", row.id, rows.nic()));
}

int run_fit(const CalibrateOptions& options, const std::string& nic, const std::vector<Row>& chosen) {
  find_data(DataKind::nic, nic);
  const NicRows rows(nic, chosen);
  check_rows(options, rows, chosen);
  make_folder(options.out);
  JsonOutput json(options.json);
  const auto fit = fit_of(rows, {options.rounds, options.jobs});
  fmt::print("{}", fit_text(rows, fit));
  json.write(fit_json(rows, fit));
  if (options.out.empty()) return 0;
  const auto path = fs::path(options.out) / (nic + "-fit");
  write_file(path.string() + ".toml", fit_toml(rows, fit));
  write_file(path.string() + ".json", fit_json(rows, fit).dump(2) + '\n');
  return 0;
}

}  // namespace

int run_calibrate(const CalibrateOptions& options) {
  const auto rows = chosen_rows(options.rows);
  if (options.sensitivity) return run_sensitivity(options, rows);
  if (options.fit) return run_fit(options, *options.fit, rows);
  make_folder(options.out);
  JsonOutput json(options.json);
  Table table;
  table.heading();
  std::size_t failed = 0, argued = 0;
  Profiles profiles;
  for (const auto& row : rows) {
    fmt::print("\n{:<7} {}\n", row.id, row.setup);
    const auto results = run_points(row.points, options.jobs);
    if (!options.out.empty()) keep_points(options.out, row, results);
    add_profiles(results, profiles);
    const Measured measured(results);
    for (const auto& check : row.checks) {
      const auto verdict = table.add(row, check, check.simulated(measured));
      failed += verdict == Verdict::fail;
      argued += verdict == Verdict::argued;
    }
  }
  json.write(table.json());
  if (!options.out.empty()) write_file(fs::path(options.out) / "calibration.html", plots_page(table.json()));
  print_sources(profiles);
  const auto* others = argued > 0 ? "every other number" : "every number";
  if (argued > 0) fmt::print("\n{} outside of the tolerance, with an explanation", argued);
  if (failed > 0)
    fmt::print("\n{} outside of the tolerance\n", failed);
  else
    fmt::print("\n{} is within the tolerance\n", others);
  return failed == 0 ? 0 : 1;
}

}  // namespace rnicsim::sim::calibrate
