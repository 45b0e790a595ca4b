#include "sim/calibrate/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "sim/calibrate/row.h"
#include "sim/config/config_error.h"
#include "sim/config/param_list.h"
#include "sim/json_output.h"

namespace rnicsim::sim::calibrate {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string upper(std::string text) {
  for (auto& letter : text) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return text;
}

std::vector<Row> chosen_rows(const std::vector<std::string>& names) {
  auto rows = all_rows();
  for (const auto& name : names)
    if (std::ranges::find(rows, upper(name), &Row::id) == rows.end())
      throw ConfigError(fmt::format("there is no experiment '{}'; there are {} to {}", shown(name), rows.front().id,
                                    rows.back().id));
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

// "308 QPs" as a part of a file's name.
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

std::string tolerance(const Check& check) {
  const double below = check.expected - check.low, above = check.high - check.expected;
  if (std::abs(below - above) < 1e-9) return fmt::format("+-{:.4g}", above);
  if (check.high >= 1e12) return fmt::format(">= {:.4g}", check.low);
  return fmt::format("{:.4g} .. {:.4g}", check.low, check.high);
}

class Table {
 public:
  void heading() const { line("id", "what", "expected", "tolerance", "simulated", ""); }

  // False: it is not within its tolerance, and nothing is said for it.
  bool add(const Row& row, const Check& check, double simulated) {
    const bool good = simulated >= check.low && simulated <= check.high;
    const bool argued = !good && !check.argued.empty();
    line(row.id, check.what, fmt::format("{:.4g}", check.expected), tolerance(check),
         fmt::format("{:.4g}{}{}", simulated, check.unit.empty() ? "" : " ", check.unit),
         good ? "PASS" : argued ? "DIFFERS" : "FAIL");
    if (argued) fmt::print("{:<7} ({})\n", "", check.argued);
    if (argued) ++argued_;
    json_.push_back({{"id", row.id},
                     {"setup", row.setup},
                     {"what", check.what},
                     {"expected", check.expected},
                     {"low", check.low},
                     {"high", check.high},
                     {"unit", check.unit},
                     {"simulated", simulated},
                     {"pass", good}});
    if (argued) json_.back()["argued"] = check.argued;
    return good || argued;
  }
  std::size_t argued() const { return argued_; }
  const Json& json() const { return json_; }

 private:
  static void line(std::string_view id, std::string_view what, std::string_view expected, std::string_view allowed,
                   std::string_view simulated, std::string_view verdict) {
    fmt::print("{:<7} {:<44} {:>9} {:>14} {:>13}{}{}\n", id, what, expected, allowed, simulated,
               verdict.empty() ? "" : "  ", verdict);
  }

  Json json_ = Json::array();
  std::size_t argued_ = 0;
};

}  // namespace

int run_calibrate(const CalibrateOptions& options) {
  const auto rows = chosen_rows(options.rows);
  std::error_code error;
  if (!options.out.empty() && !fs::create_directories(options.out, error) && error)
    throw ConfigError(fmt::format("{}: {}", options.out, error.message()));
  JsonOutput json(options.json);
  Table table;
  table.heading();
  bool good = true;
  for (const auto& row : rows) {
    fmt::print("\n{:<7} {}\n", row.id, row.setup);
    const auto results = run_points(row.points, options.jobs);
    if (!options.out.empty()) keep_points(options.out, row, results);
    const Measured measured(results);
    for (const auto& check : row.checks) good &= table.add(row, check, check.simulated(measured));
  }
  json.write(table.json());
  fmt::print("\n{}\n", !good               ? "a number is not within its tolerance"
                       : table.argued() == 0 ? "every number is within its tolerance"
                                             : fmt::format("every number is within its tolerance but {} that {}",
                                                           table.argued(), "differ, as is said there"));
  return good ? 0 : 1;
}

}  // namespace rnicsim::sim::calibrate
