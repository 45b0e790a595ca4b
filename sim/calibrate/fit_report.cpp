// SPDX-License-Identifier: Apache-2.0
#include "sim/calibrate/fit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "sim/calibrate/verdict.h"
#include "sim/config/toml_file.h"

namespace rnicsim::sim::calibrate {
namespace {

// Example: "0.9249 (-0.25)". Empty without numbers.
std::string with_error(const Check& check, const Numbers& numbers, std::size_t number) {
  if (numbers.empty()) return "";
  const double off = tolerances_off(check, numbers[number]);
  return fmt::format("{:.4g} ({:+.2f})", numbers[number], std::abs(off) < 0.005 ? 0.0 : off);
}

// Root mean square of a row's errors, in tolerances.
double error_of(const NicRow& row, const Numbers& numbers) {
  double sum = 0;
  for (std::size_t i = 0; i < row.row.checks.size(); ++i)
    sum += std::pow(tolerances_off(row.row.checks[i], numbers[row.first_number + i]), 2);
  return std::sqrt(sum / static_cast<double>(row.row.checks.size()));
}
std::string error_text(const NicRow& row, const Numbers& numbers) {
  return numbers.empty() ? "" : fmt::format("{:.2f}", error_of(row, numbers));
}

std::string rounds_text(const Fit& fit) {
  auto text = fmt::format("{:>5} {:>8} {:>9}\n", "round", "region", "misfit");
  for (std::size_t i = 0; i < fit.rounds.size(); ++i) {
    const auto& [region, misfit, is_taken] = fit.rounds[i];
    if (i == 0)
      text += fmt::format("{:>5} {:>8} {:>9.4g}  the profile\n", i, "", misfit);
    else
      text += fmt::format("{:>5} {:>8.3g} {:>9.4g}  {}\n", i, region, misfit, is_taken ? "taken" : "rejected");
  }
  return text;
}

std::string estimates_text(const Fit& fit) {
  auto text = fmt::format("{:<36} {:>12} {:>12}  {}\n", "estimate", "profile", "fitted", "bounds");
  for (std::size_t i = 0; i < fit.values.size(); ++i) {
    const auto& of = fit.estimates.searched[i];
    text += fmt::format("{:<36} {:>12} {:>12}  {} .. {}\n", of.path, of.text(of.value),
                        fit.values[i] == of.value ? "same" : of.text(fit.values[i]), of.text(of.low), of.text(of.high));
  }
  text += fmt::format("\n{:<36} {:>12}  {}\n", "not searched", "profile", "why");
  for (const auto& of : fit.estimates.fixed) text += fmt::format("{:<36} {:>12}  {}\n", of.path, of.value, of.why);
  return text;
}

std::string numbers_text(const NicRows& rows, const Fit& fit) {
  std::string text;
  const auto line = [&](std::string_view id, std::string_view what, std::string_view expected, auto&&... of) {
    text += fmt::format("{:<7} {:<44} {:>11}", id, what, expected);
    ((text += fmt::format(" {:>16}", of)), ...);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  };
  const bool held_out = !fit.held_out.empty();
  line("id", "what", "expected", "profile", "fitted", held_out ? "of the others" : "");
  for (const auto& row : rows.rows()) {
    for (std::size_t i = 0; i < row.row.checks.size(); ++i) {
      const auto& check = row.row.checks[i];
      const auto number = row.first_number + i;
      line(row.row.id, check.what, fmt::format("{:.4g}{}{}", check.expected, check.unit.empty() ? "" : " ", check.unit),
           with_error(check, fit.profile, number), with_error(check, fit.fitted, number),
           with_error(check, fit.held_out, number));
    }
    line(row.row.id, "all of it, root of the mean square", "", error_text(row, fit.profile),
         error_text(row, fit.fitted), error_text(row, fit.held_out));
  }
  return text;
}

Json values_json(const Fit& fit, const Values& values) {
  Json json = Json::object();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& of = fit.estimates.searched[i];
    if (values[i] != of.value) json[of.path] = of.text(values[i]);
  }
  return json;
}

bool is_bare(const std::string& value) {
  return std::ranges::all_of(value, [](unsigned char letter) {
    return std::isdigit(letter) != 0 || letter == '.' || letter == '-' || letter == 'e';
  });
}

}  // namespace

std::string fit_text(const NicRows& rows, const Fit& fit) {
  auto text = fmt::format("{}: {} numbers of {} experiments, {} estimates between bounds\n\n", rows.nic(),
                          rows.checks().size(), rows.rows().size(), fit.values.size());
  text += rounds_text(fit) + '\n' + estimates_text(fit);
  text += "\nnumbers, and in tolerances how far they are off";
  if (!fit.held_out.empty()) text += "; at last when the estimates are fitted to the other experiments alone";
  return text + '\n' + numbers_text(rows, fit);
}

Json fit_json(const NicRows& rows, const Fit& fit) {
  Json json = {{"nic", rows.nic()}};
  for (const auto& [region, misfit, is_taken] : fit.rounds)
    json["rounds"].push_back({{"region", region}, {"misfit", misfit}, {"taken", is_taken}});
  for (std::size_t i = 0; i < fit.values.size(); ++i) {
    const auto& of = fit.estimates.searched[i];
    json["estimates"].push_back({{"parameter", of.path},
                                 {"profile", of.text(of.value)},
                                 {"fitted", of.text(fit.values[i])},
                                 {"low", of.text(of.low)},
                                 {"high", of.text(of.high)}});
  }
  json["not_searched"] = Json::array();
  for (const auto& of : fit.estimates.fixed)
    json["not_searched"].push_back({{"parameter", of.path}, {"profile", of.value}, {"why", of.why}});
  for (std::size_t i = 0; i < rows.rows().size(); ++i) {
    const auto& row = rows.rows()[i];
    Json of_row = {{"id", row.row.id}, {"setup", row.row.setup}};
    if (!fit.held_out.empty()) of_row["fitted_to_the_others"] = values_json(fit, fit.values_without[i]);
    for (std::size_t at = 0; at < row.row.checks.size(); ++at) {
      const auto& check = row.row.checks[at];
      const auto number = row.first_number + at;
      Json of = {{"what", check.what},
                 {"unit", check.unit},
                 {"expected", check.expected},
                 {"low", check.low},
                 {"high", check.high},
                 {"tolerance", tolerance_of(check)},
                 {"profile", fit.profile[number]},
                 {"fitted", fit.fitted[number]}};
      if (!fit.held_out.empty()) of["held_out"] = fit.held_out[number];
      of_row["numbers"].push_back(std::move(of));
    }
    json["experiments"].push_back(std::move(of_row));
  }
  return json;
}

std::string fit_toml(const NicRows& rows, const Fit& fit) {
  TomlFile file;
  for (std::size_t i = 0; i < fit.values.size(); ++i) {
    const auto& of = fit.estimates.searched[i];
    const auto text = of.text(fit.values[i]);
    if (fit.values[i] != of.value)
      file.settings.push_back({of.path, is_bare(text) ? Setting::Type::number : Setting::Type::text, text, ""});
  }
  return fmt::format("# E: what `rnicsim calibrate --fit {}` found.\nbase = \"{}\"\n\n{}", rows.nic(), rows.nic(),
                     write_toml(file));
}

}  // namespace rnicsim::sim::calibrate
