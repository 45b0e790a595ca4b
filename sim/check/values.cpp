// SPDX-License-Identifier: Apache-2.0
#include "sim/check/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "model/base/units.h"
#include "model/fabric/switch_params.h"
#include "sim/adapter_counters.h"
#include "sim/config/config_error.h"
#include "sim/config/param_list.h"
#include "sim/results/counter_results.h"

namespace rnicsim::sim::check {
namespace {

// Keys of results that are not compared: inputs of the run, and values that differ in each run.
constexpr std::array kLeftOut{"schema",   "command", "rnicsim", "workload", "nic",    "extrapolated", "host",
                              "topology", "seed",    "time",    "measure",  "faults", "parameters",   "simulator"};

bool is_left_out(std::string_view key) { return std::ranges::find(kLeftOut, key) != kLeftOut.end(); }

// Units by the path of a counter or of a value derived from counters.
const std::map<std::string, std::string, std::less<>>& counter_units() {
  static const auto units = [] {
    std::map<std::string, std::string, std::less<>> made;
    const auto take = [&](const CounterList& list) {
      for (const auto& result : counter_results(list, list, Duration{1})) made[result.path] = result.unit;
    };
    take(CounterList(AdapterCounters{}));
    take(CounterList(fabric::SwitchCounters{}));
    return made;
  }();
  return units;
}

void collect(const std::string& name, const Json& json, std::vector<Value>& values) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      if (key != "parameters") collect(name.empty() ? key : name + '.' + key, value, values);
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) collect(fmt::format("{}[{}]", name, i), json[i], values);
  } else {
    values.push_back({name, json});
  }
}

// Reads the values of each host or switch: {"h0": {"counters": {PATH: ...}, "derived": {PATH: ...}}}.
void collect_counters(const Json& owners, std::vector<Value>& values) {
  if (!owners.is_object()) return;
  for (const auto& [owner, tables] : owners.items())
    if (tables.is_object())
      for (const auto& [kind, table] : tables.items()) collect(owner, table, values);
}

const Value* find(const std::vector<Value>& values, std::string_view name) {
  const auto found = std::ranges::find(values, name, &Value::name);
  return found == values.end() ? nullptr : &*found;
}

std::string missing(std::string_view name, const std::vector<Value>& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.push_back(value.name);
  const auto meant = nearest_name(name, names);
  return fmt::format("the results have no value '{}'{}", shown(name),
                     meant ? fmt::format("; did you mean {}?", *meant) : "");
}

const char* words(Property::Relation relation) {
  switch (relation) {
    case Property::Relation::below: return "below";
    case Property::Relation::at_most: return "at most";
    case Property::Relation::above: return "above";
    case Property::Relation::at_least: return "at least";
    default: return "equal to";
  }
}

bool holds(const Property& property, double value, double operand) {
  switch (property.relation) {
    case Property::Relation::below: return value < operand;
    case Property::Relation::at_most: return value <= operand;
    case Property::Relation::above: return value > operand;
    case Property::Relation::at_least: return value >= operand;
    default: return std::abs(value - operand) <= property.margin.allowed(operand);
  }
}

std::string value_text(const Value& value) {
  return value.value.is_number() ? text_of(value.value.get<double>(), unit_of(value.name)) : value.value.dump();
}

std::string give_or_take(const Margin& margin, double expected, Unit unit) {
  const double allowed = margin.allowed(expected);
  return allowed == 0 ? "" : fmt::format(", with a tolerance of {}", text_of(allowed, unit));
}

std::optional<Margin> margin_of(const ExpectedResults& rules, std::string_view name) {
  std::optional<Margin> margin = Margin{};
  for (const auto& exception : rules.may_differ)
    if (matches(exception.value, name)) margin = exception.margin;
  return margin;
}

// nullopt: as expected.
std::optional<std::string> difference(const Value& expected, const Value* is, const Margin& margin) {
  if (!is)
    return fmt::format("{}: {} expected, but the results have no such value", expected.name, value_text(expected));
  if (!expected.value.is_number() || !is->value.is_number())
    return expected.value == is->value ? std::nullopt
                                       : std::optional(fmt::format("{}: {} expected, not {}", expected.name,
                                                                   value_text(expected), value_text(*is)));
  const double wanted = expected.value.get<double>(), got = is->value.get<double>();
  if (std::abs(got - wanted) <= margin.allowed(wanted)) return std::nullopt;
  return fmt::format("{}: {} expected{}, not {}", expected.name, value_text(expected),
                     give_or_take(margin, wanted, unit_of(expected.name)), value_text(*is));
}

// Glob matching of a text without dots. A '*' first matches nothing; on a mismatch the last '*' takes one character
// more.
bool word_matches(std::string_view pattern, std::string_view word) {
  std::size_t at = 0, star = pattern.npos, resume = 0;
  for (std::size_t i = 0; i < word.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      resume = i;
    } else if (at < pattern.size() && pattern[at] == word[i]) {
      ++at;
      ++i;
    } else if (star != pattern.npos) {
      at = star + 1;
      i = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == pattern.npos;
}

// The part of `json` whose keys are in `like`.
Json pruned(const Json& json, const Json& like) {
  if (json.is_object() && like.is_object()) {
    Json kept = Json::object();
    for (const auto& [key, value] : like.items())
      if (json.contains(key)) kept[key] = pruned(json[key], value);
    return kept;
  }
  return json;
}

}  // namespace

Unit unit_of(std::string_view value) {
  // The first word is the name of the host or switch.
  const auto found = counter_units().find(value.substr(std::min(value.find('.'), value.size() - 1) + 1));
  if (found != counter_units().end()) {
    const auto& unit = found->second;
    return unit == "ps" ? Unit::time : unit == "b/s" ? Unit::rate : unit == "bytes" ? Unit::bytes : Unit::none;
  }
  if (value.ends_with(".samples")) return Unit::none;
  if (value.ends_with("_ps") || value.find("_ps.") != value.npos) return Unit::time;
  return value.ends_with("_bits_per_s") ? Unit::rate : Unit::none;
}

std::string text_of(double number, Unit unit) {
  constexpr double kMost = 9e18;  // limit of the integer types
  if (unit == Unit::time && std::abs(number) < kMost) return to_string(Duration{std::llround(number)});
  if (unit == Unit::rate && number >= 0 && number < kMost) return to_string(BitRate{std::uint64_t(number)});
  return fmt::format("{}", number);
}

std::optional<Json> parse_results(std::string_view text) {
  constexpr std::size_t kDeepest = 64;
  auto json = Json::parse_if_valid(text, kDeepest);
  return json && json->is_object() ? std::move(json) : std::nullopt;
}

std::vector<Value> values_of(const Json& results) {
  std::vector<Value> values;
  if (!results.is_object()) return values;
  for (const auto& [key, value] : results.items()) {
    if (key == "hosts" || key == "switches")
      collect_counters(value, values);
    else if (!is_left_out(key))
      collect(key, value, values);
  }
  return values;
}

bool matches(std::string_view pattern, std::string_view name) {
  for (;;) {
    const auto pattern_end = pattern.find('.'), name_end = name.find('.');
    if (!word_matches(pattern.substr(0, pattern_end), name.substr(0, name_end))) return false;
    if (pattern_end == pattern.npos || name_end == name.npos) return pattern_end == name_end;
    pattern.remove_prefix(pattern_end + 1);
    name.remove_prefix(name_end + 1);
  }
}

std::optional<std::string> violation(const Property& property, const std::vector<Value>& values) {
  const auto number = [&](const Value& value) {
    if (value.value.is_number()) return std::optional(value.value.get<double>());
    if (value.value.is_null()) return std::optional<double>();
    throw ConfigError(fmt::format("{}: {} is not a number, but {}", property.where, value.name, value.value.dump()));
  };
  const auto* name = std::get_if<std::string>(&property.operand);
  const Value* other = name ? find(values, *name) : nullptr;
  if (name && !other) throw ConfigError(fmt::format("{}: {}", property.where, missing(*name, values)));
  const auto operand = other ? number(*other) : std::optional(std::get<double>(property.operand));
  const auto unit = unit_of(property.value);
  bool any = false;
  for (const auto& value : values) {
    if (!matches(property.value, value.name)) continue;
    any = true;
    const auto is = number(value);
    if (is && operand && holds(property, *is, *operand)) continue;
    const auto said = fmt::format("{}: {} is {}, not {} ", property.where, value.name,
                                  is ? text_of(*is, unit) : "not known", words(property.relation));
    if (!other) return said + text_of(*operand, unit) + give_or_take(property.margin, *operand, unit);
    return said + fmt::format("{}, which is {}{}", other->name, operand ? text_of(*operand, unit) : "not known",
                              operand ? give_or_take(property.margin, *operand, unit) : "");
  }
  if (!any) throw ConfigError(fmt::format("{}: {}", property.where, missing(property.value, values)));
  return std::nullopt;
}

ResultsDifference compare_results(const ExpectedResults& rules, const Json& expected, const Json& results) {
  std::map<std::string_view, const Value*> known;
  const auto values = values_of(results);
  for (const auto& value : values) known[value.name] = &value;
  ResultsDifference difference_found;
  for (const auto& value : values_of(expected)) {
    const auto margin = margin_of(rules, value.name);
    if (!margin) continue;
    const auto is = known.find(value.name);
    auto line = difference(value, is == known.end() ? nullptr : is->second, *margin);
    if (line && difference_found.count++ == 0) difference_found.first = std::move(*line);
  }
  return difference_found;
}

Json kept_results(const Json& results, const Json* old) {
  Json kept = Json::object();
  for (const auto& [key, value] : results.items())
    if (!is_left_out(key)) kept[key] = value;
  return old ? pruned(kept, *old) : kept;
}

}  // namespace rnicsim::sim::check
