// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/overrides.h"

#include <fmt/format.h>

#include <charconv>

#include "sim/bench/workload.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim::bench {
namespace {

[[noreturn]] void refuse_override(std::string_view text, std::string_view why) {
  throw ConfigError(fmt::format("--set {}: {}", shown(text), why));
}

toml::table parse_value(const std::string& text) {
  try {
    return toml::parse("v = " + text);
  } catch (const toml::parse_error&) {
    toml::table table;
    table.insert("v", text);
    return table;
  }
}

void assign(toml::table& table, std::string_view key, const toml::table& value) {
  table.insert_or_assign(key, *value.get("v"));
}

}  // namespace

bool is_workload_key(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == text.npos) return false;
  const auto key = text.substr(0, equals);
  return key.starts_with("flow[") || key.starts_with("flow.") || key.starts_with("measure.") || key == "seed" ||
         key == "nic" || key == "host" || key == "topology" || key == "faults";
}

void apply_override(toml::table& root, const std::string& text) {
  const auto equals = text.find('=');
  const std::string_view path = std::string_view(text).substr(0, equals);
  const auto value = parse_value(text.substr(equals + 1));
  const auto dot = path.find('.');
  if (dot == path.npos) return assign(root, path, value);
  const auto key = path.substr(dot + 1);
  auto group = path.substr(0, dot);
  if (group == "measure") {
    if (!root.contains("measure")) root.insert("measure", toml::table());
    auto* measure = root.get_as<toml::table>("measure");
    if (!measure) refuse_override(text, "the workload's measure is no table");
    // Only one of the two keys is allowed: the override replaces the other one.
    if (key == "duration") measure->erase("operations");
    if (key == "operations") measure->erase("duration");
    return assign(*measure, key, value);
  }
  auto* flows = root.get_as<toml::array>("flow");
  if (!flows || !flows->is_array_of_tables()) refuse_override(text, "the workload has no [[flow]]");
  std::size_t first = 0, end = flows->size();
  if (group != "flow") {
    group.remove_prefix(std::string_view("flow[").size());
    const auto [stop, error] = std::from_chars(group.data(), group.data() + group.size(), first);
    if (error != std::errc{} || std::string_view(stop, group.data() + group.size()) != "]" || first >= end)
      refuse_override(text, fmt::format("flow[0]..flow[{}] is needed", end - 1));
    end = first + 1;
  }
  for (auto i = first; i < end; ++i) assign(*flows->get_as<toml::table>(i), key, value);
}

}  // namespace rnicsim::sim::bench
