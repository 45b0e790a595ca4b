// SPDX-License-Identifier: Apache-2.0
#include "sim/check/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>

#include "sim/check/values.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim::check {
namespace {

constexpr int kStatisticsSchema = 1;

struct Pairs {
  std::vector<double> expected, now;  // values of the seeds for which both sides have the number
  std::size_t expected_alone = 0, now_alone = 0;
};

// Position of the mean difference of a number relative to its tolerance.
struct NumberDifference {
  double clearness = 0;  // distance outside the tolerance, in units of the tolerance
  std::string line;
};

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

// Half the width of the confidence interval of the mean, for the given probability of error.
double reach_of(const std::vector<double>& values, double mean, double error) {
  const double n = double(values.size());
  if (values.size() < 2) return 0;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  if (squares == 0) return 0;
  using InDouble = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
  const boost::math::students_t_distribution<double, InDouble> distribution(n - 1);
  return quantile(complement(distribution, error / 2)) * std::sqrt(squares / (n - 1) / n);
}

Pairs pairs_of(const std::string& name, const Statistics& expected, const Statistics& now) {
  Pairs pairs;
  for (const auto& [seed, numbers] : expected.seeds) {
    const auto& others = now.seeds.at(seed);
    const auto a = numbers.find(name), b = others.find(name);
    if (a != numbers.end() && b != others.end()) {
      pairs.expected.push_back(a->second);
      pairs.now.push_back(b->second);
    } else {
      pairs.expected_alone += a != numbers.end();
      pairs.now_alone += b != others.end();
    }
  }
  return pairs;
}

// nullopt: any deviation is allowed.
std::optional<Margin> tolerance_of(const ExpectedStatistics& rules, const std::string& name) {
  std::optional<Margin> margin = rules.tolerance;
  for (const auto& exception : rules.may_differ)
    if (matches(exception.value, name)) margin = exception.margin;
  return margin;
}

std::vector<std::string> compared_names(const ExpectedStatistics& rules, const Statistics& expected,
                                        const Statistics& now) {
  std::set<std::string> names;
  for (const auto* side : {&expected, &now})
    for (const auto& [seed, numbers] : side->seeds)
      for (const auto& [name, value] : numbers)
        if (is_statistic(name)) names.insert(name);
  std::erase_if(names, [&](const std::string& name) {
    const bool is_chosen = rules.values.empty() || std::ranges::any_of(rules.values, [&](const std::string& pattern) {
                             return matches(pattern, name);
                           });
    return !is_chosen || !tolerance_of(rules, name);
  });
  return {names.begin(), names.end()};
}

std::string share_text(double share) { return fmt::format("{:+.3g} %", share * 100); }

std::string number_text(double number, Unit unit) {
  return unit == Unit::none ? fmt::format("{:.6g}", number) : text_of(number, unit);
}

std::string tolerance_text(const Margin& margin, double expected, Unit unit) {
  return margin.absolute < margin.allowed(expected) || margin.absolute == 0
             ? fmt::format("{:.3g} %", margin.relative * 100)
             : number_text(margin.absolute, unit);
}

std::optional<NumberDifference> difference_of(const std::string& name, const Pairs& pairs, const Margin& margin,
                                              double error, std::size_t& undecided) {
  if (pairs.expected_alone + pairs.now_alone != 0)
    return NumberDifference{
        HUGE_VAL, fmt::format("{}: present before but not now for {} of the seeds; new for {} of the seeds", name,
                              pairs.expected_alone, pairs.now_alone)};
  std::vector<double> differences;
  for (std::size_t i = 0; i < pairs.now.size(); ++i) differences.push_back(pairs.now[i] - pairs.expected[i]);
  const double before = mean_of(pairs.expected), mean = mean_of(differences);
  const double reach = reach_of(differences, mean, error), allowed = margin.allowed(before);
  const double least = std::abs(mean) - reach;
  if (least <= allowed) {
    undecided += std::abs(mean) + reach > allowed;
    return std::nullopt;
  }
  const auto unit = unit_of(name);
  const auto share = [&](double of) { return before == 0 ? std::string("-") : share_text(of / before); };
  return NumberDifference{
      least / std::max(allowed, std::abs(before) * 1e-12),
      fmt::format("{}: {} ({} | {}, mean of {} seeds); the difference is within {} .. {}, the tolerance is {}", name,
                  share(mean), number_text(before, unit), number_text(before + mean, unit), pairs.now.size(),
                  share(mean - reach), share(mean + reach), tolerance_text(margin, before, unit))};
}

std::optional<std::uint64_t> seed_of(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(seed) : std::nullopt;
}

}  // namespace

Json statistics_json(const Statistics& statistics) {
  Json configuration = Json::object(), seeds = Json::object();
  for (const auto& [path, value] : statistics.header.configuration) configuration[path] = value;
  for (const auto& [seed, numbers] : statistics.seeds) {
    auto& of_seed = seeds[std::to_string(seed)];
    of_seed = Json::object();
    for (const auto& [name, value] : numbers)
      if (is_statistic(name)) of_seed[name] = value;
  }
  Json json = Json::object();
  json["schema"] = kStatisticsSchema;
  json["program"] = statistics.header.program;
  json["time"] = statistics.header.time;
  json["hosts"] = statistics.header.hosts;
  json["commands"] = statistics.header.commands;
  json["configuration"] = configuration;
  json["seeds"] = seeds;
  return json;
}

std::optional<Statistics> parse_statistics(std::string_view text) try {
  const auto json = parse_results(text);
  if (!json || json->at("schema").get<int>() != kStatisticsSchema) return std::nullopt;
  Statistics result;
  auto& header = result.header;
  json->at("program").get_to(header.program);
  json->at("time").get_to(header.time);
  json->at("hosts").get_to(header.hosts);
  json->at("commands").get_to(header.commands);
  for (const auto& [path, value] : json->at("configuration").items())
    header.configuration.emplace_back(path, value.get<std::string>());
  for (const auto& [seed, numbers] : json->at("seeds").items()) {
    const auto number = seed_of(seed);
    if (!number) return std::nullopt;
    auto& of_seed = result.seeds[*number];
    for (const auto& [name, value] : numbers.items()) of_seed[name] = value.get<double>();
  }
  return result;
} catch (const JsonError&) {
  return std::nullopt;
}

StatisticalDifference compare_statistics(const ExpectedStatistics& rules, const Statistics& expected,
                                         const Statistics& now) {
  const auto names = compared_names(rules, expected, now);
  if (names.empty()) throw ConfigError("statistics: no run has a rate or a latency to compare");
  StatisticalDifference result;
  result.compared = names.size();
  const double error = (1 - rules.confidence) / double(names.size());
  std::vector<NumberDifference> found;
  for (const auto& name : names) {
    auto difference =
        difference_of(name, pairs_of(name, expected, now), *tolerance_of(rules, name), error, result.undecided);
    if (difference) found.push_back(std::move(*difference));
  }
  std::ranges::stable_sort(found, std::greater{}, &NumberDifference::clearness);
  for (auto& each : found) result.lines.push_back(std::move(each.line));
  return result;
}

}  // namespace rnicsim::sim::check
