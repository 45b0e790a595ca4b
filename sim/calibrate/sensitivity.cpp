// SPDX-License-Identifier: Apache-2.0
#include "sim/calibrate/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "sim/bench/bench.h"
#include "sim/calibrate/param_number.h"
#include "sim/config/profiles/profile_marks.h"

namespace rnicsim::sim::calibrate {
namespace {

constexpr double kStep = 0.1;
constexpr double kStill = 0.001;  // relative change; with less, an estimate does not move a number

// A NIC in a host, and the points of the row that have them.
struct Place {
  std::vector<std::size_t> points;
  std::vector<std::string> estimates;
};

// One estimate with one changed value. `first`: index of its points among all points that are run.
struct Variation {
  const Place* place;
  std::string path, from, to;
  std::size_t first = 0;
};

std::map<std::pair<std::string, std::string>, Place> places_of(const Row& row) {
  std::map<std::pair<std::string, std::string>, Place> places;
  for (std::size_t i = 0; i < row.points.size(); ++i) {
    const auto& workload = prepared(row.points[i]).workload;
    auto& place = places[{workload.nic, workload.host}];
    place.points.push_back(i);
    if (!place.estimates.empty()) continue;
    for (const auto& [setting, mark] : marked_settings(workload.nic, workload.host))
      if (mark && mark->source == Source::estimated) place.estimates.push_back(setting.path);
  }
  return places;
}

// Values that are impossible together with the other values are left out.
bool can_be(const Place& place, const Row& row, const std::string& set) {
  return std::ranges::all_of(place.points, [&](auto point) { return is_possible(row.points[point].with({set})); });
}

std::vector<Variation> variations_of(const Place& place, const Row& row) {
  auto config = prepared(row.points[place.points.front()]).config;
  const ParamList params(config);
  std::vector<Variation> variations;
  for (const auto& path : place.estimates) {
    const auto* entry = params.find(path);
    if (entry == nullptr) continue;
    for (const double factor : {1 - kStep, 1 + kStep}) {
      const auto value = scaled(*entry, factor);
      if (value && can_be(place, row, fmt::format("{}={}", path, *value)))
        variations.push_back({&place, path, entry->value_text(), *value});
    }
  }
  return variations;
}

double change(double from, double to) { return from != 0 ? (to - from) / std::abs(from) : to - from; }

// Changed values of one parameter, and the number at each of them.
struct Moved {
  std::string path, from;
  std::vector<std::pair<std::string, double>> to;
  double most = 0;
};

void print_check(const Check& check, double simulated, std::vector<Moved> moved) {
  std::ranges::stable_sort(moved, std::greater{}, &Moved::most);
  fmt::print("  {}: {:.4g}{}{}\n", check.what, simulated, check.unit.empty() ? "" : " ", check.unit);
  std::size_t still = 0;
  for (const auto& each : moved) {
    if (each.most < kStill) {
      ++still;
      continue;
    }
    std::string text;
    for (const auto& [value, number] : each.to)
      text += fmt::format("  {:>12}: {:>9.4g} {:>+7.2f}%", value, number, 100 * change(simulated, number));
    fmt::print("    {:<36} {:>10}{}\n", each.path, each.from, text);
  }
  fmt::print("    {} others move it by less than {}%\n", still, 100 * kStill);
}

}  // namespace

std::optional<std::string> scaled(const ParamEntry& entry, double factor) {
  const auto number = number_of(entry);
  if (!number) return std::nullopt;
  double moved = number->value * factor;
  if (number->is_whole) moved = std::round(moved);
  if (number->is_whole && moved == number->value) moved += factor < 1 ? -1 : 1;
  return moved >= 0 ? std::optional(number->text(moved)) : std::nullopt;
}

Json sensitivity_of(const Row& row, unsigned jobs) {
  const auto places = places_of(row);
  auto points = row.points;
  std::vector<Variation> variations;
  for (const auto& [of, place] : places)
    for (auto& variation : variations_of(place, row)) {
      variation.first = points.size();
      for (const auto point : place.points)
        points.push_back(row.points[point].with({fmt::format("{}={}", variation.path, variation.to)}));
      variations.push_back(std::move(variation));
    }
  const auto results = run_points(points, jobs);
  const std::vector<Json> base(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(row.points.size()));
  Json table = Json::array();
  for (const auto& check : row.checks) {
    const double simulated = check.simulated(Measured(base));
    std::map<std::pair<const Place*, std::string>, Moved> moved;
    for (const auto& variation : variations) {
      auto own = base;
      for (std::size_t i = 0; i < variation.place->points.size(); ++i)
        own[variation.place->points[i]] = results[variation.first + i];
      const double number = check.simulated(Measured(own));
      auto& of = moved[{variation.place, variation.path}];
      of.path = variation.path;
      of.from = variation.from;
      of.to.emplace_back(variation.to, number);
      of.most = std::max(of.most, std::abs(change(simulated, number)));
      table.push_back({{"id", row.id},
                       {"what", check.what},
                       {"simulated", simulated},
                       {"parameter", variation.path},
                       {"value", variation.from},
                       {"moved_to", variation.to},
                       {"then", number}});
    }
    std::vector<Moved> all;
    for (auto& [of, each] : moved) all.push_back(std::move(each));
    print_check(check, simulated, std::move(all));
  }
  return table;
}

}  // namespace rnicsim::sim::calibrate
