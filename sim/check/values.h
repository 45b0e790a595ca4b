// SPDX-License-Identifier: Apache-2.0
// Named values of a run's results, and their comparison.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/check/case.h"
#include "sim/results/json.h"

namespace rnicsim::sim::check {

enum class Unit { none, time, rate, bytes };
// Unit of a value, derived from its name. Times are in ps, rates in b/s.
Unit unit_of(std::string_view value);
// A value for display: "5.2 us", "42".
std::string text_of(double number, Unit unit);

struct Value {
  std::string name;
  Json value;  // neither an object nor an array
};

// nullopt: not a JSON object, or nested too deep.
std::optional<Json> parse_results(std::string_view text);

// Values of the results without those that depend on the machine. Counters of hosts and switches and the values derived
// from them are named HOST.COUNTER; other values by their path: "flows[0].latency_ps.p99".
std::vector<Value> values_of(const Json& results);

// True: the pattern matches the name. '*' stands for any text without a dot.
bool matches(std::string_view pattern, std::string_view name);

// nullopt: the property holds; else one line with both values. ConfigError: no such value, or its type cannot be
// compared this way.
std::optional<std::string> violation(const Property& property, const std::vector<Value>& values);

struct ResultsDifference {
  std::string first;  // first difference in one line; empty: none
  std::size_t count = 0;
};
// Compares only the values that `expected` contains.
ResultsDifference compare_results(const ExpectedResults& rules, const Json& expected, const Json& results);
// The part of `results` to store as an expectation: the values that `old` contains, or all comparable values.
Json kept_results(const Json& results, const Json* old);

}  // namespace rnicsim::sim::check
