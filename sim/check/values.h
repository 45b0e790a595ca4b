// The values that results hold, by name, and what is asked of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/check/case.h"
#include "sim/results/json.h"

namespace rnicsim::sim::check {

enum class Unit { none, time, rate, bytes };
// That of a value, by its name: time is in ps, a rate in b/s.
Unit unit_of(std::string_view value);
// "5.2 us", "42"
std::string text_of(double number, Unit unit);

struct Value {
  std::string name;
  Json value;  // no object and no array
};

// nullopt: it is no JSON object. What is nested very deep is left out.
std::optional<Json> parse_results(std::string_view text);

// Counters of hosts and switches, and what is derived of them, as HOST.COUNTER; all else by its path in the results:
// "flows[0].latency_ps.p99". Without what differs from machine to machine.
std::vector<Value> values_of(const Json& results);

// Whether '*' for anything but a dot makes `pattern` the name.
bool matches(std::string_view pattern, std::string_view name);

// nullopt: it holds. Else one line that says what does not, with both values. ConfigError: there is no such value, or
// none that can be compared so.
std::optional<std::string> violation(const Property& property, const std::vector<Value>& values);

struct ResultsDifference {
  std::string first;  // one line; empty: there is none
  std::size_t count = 0;
};
// What `expected` does not name is not compared.
ResultsDifference compare_results(const ExpectedResults& rules, const Json& expected, const Json& results);
// The part of `results` that a file of expected ones keeps: as much as `old` names, or all that can be compared.
Json kept_results(const Json& results, const Json* old);

}  // namespace rnicsim::sim::check
