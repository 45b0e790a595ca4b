// SPDX-License-Identifier: Apache-2.0
// Reads a sweep file.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/bench/table_reader.h"
#include "sim/config/config_error.h"
#include "sim/config/data_files.h"
#include "sim/config/toml_file.h"
#include "sim/rerun/rerun.h"
#include "sim/sweep/plan.h"

namespace rnicsim::sim::sweep {
namespace {

using bench::TableReader;

constexpr std::uint64_t kMostSeeds = 10'000;

std::string value_text(const TableReader& reader, std::string_view key, const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  reader.refuse(key, "a text, a number, true or false");
}

// Calls `take` for each key with its whole path, so that nested tables equal dotted keys in quotes.
template <class Take>
void each_key(const toml::table& table, const std::string& prefix, Take&& take) {
  for (const auto& [key, node] : table) {
    const auto path = prefix + std::string(key.str());
    if (const auto* below = node.as_table())
      each_key(*below, path + '.', take);
    else
      take(path, node);
  }
}

const toml::table* table_of(TableReader& reader, std::string_view key) {
  const auto* node = reader.find(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) reader.refuse(key, "a table");
  return node->as_table();
}

std::vector<std::string> texts(TableReader& reader, std::string_view key) {
  std::vector<std::string> values;
  const auto* node = reader.find(key);
  if (node == nullptr) return values;
  if (!node->is_array()) reader.refuse(key, "a list of texts");
  for (const auto& element : *node->as_array()) values.push_back(value_text(reader, key, element));
  return values;
}

Axis read_axis(const TableReader& reader, const std::string& key, const toml::node& node) {
  const auto text_of = [&](const toml::node& value) { return value_text(reader, "vary." + key, value); };
  std::vector<std::string> elements;
  if (const auto* list = node.as_array())
    for (const auto& element : *list) elements.push_back(text_of(element));
  const auto text = node.is_array() ? std::string() : text_of(node);
  try {
    return node.is_array() ? parse_axis(key, elements) : parse_axis(key, text);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: vary.{}", reader.file(), error.what()));
  }
}

// Axes in the order of the file, because a TOML table does not keep the order.
std::vector<Axis> read_axes(const TableReader& reader, const toml::table& vary) {
  std::vector<std::pair<toml::source_position, Axis>> placed;
  each_key(vary, "", [&](const std::string& key, const toml::node& node) {
    placed.emplace_back(node.source().begin, read_axis(reader, key, node));
  });
  std::ranges::sort(placed, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Axis> axes;
  for (auto& [place, axis] : placed) axes.push_back(std::move(axis));
  return axes;
}

std::vector<std::uint64_t> read_seeds(TableReader& reader) {
  const auto* node = reader.find("seeds");
  if (node == nullptr) return {1};
  std::vector<std::uint64_t> seeds;
  if (const auto* list = node->as_array()) {
    for (const auto& element : *list) seeds.push_back(reader.checked_number(element, "seeds", 0, ~0ull >> 1));
    if (seeds.empty()) reader.refuse("seeds", "a number of seeds, or a list of seeds,");
  } else {
    seeds.resize(reader.checked_number(*node, "seeds", 1, kMostSeeds));
    std::iota(seeds.begin(), seeds.end(), 1);
  }
  auto sorted = seeds;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) reader.complain("seeds", "a seed is listed twice");
  return seeds;
}

Reference read_reference(TableReader reader) {
  Reference reference;
  reader.need("label");
  reader.text("label", reference.label);
  reader.need("metric");
  reader.text("metric", reference.metric);
  const auto& value = reader.need("value");
  if (!value.is_number() || !std::isfinite(*value.value<double>())) reader.refuse("value", "a number");
  reference.value = *value.value<double>();
  if (const auto* at = table_of(reader, "at"))
    each_key(*at, "", [&](const std::string& key, const toml::node& node) {
      reference.at.emplace_back(key, value_text(reader, key, node));
    });
  reader.finish();
  return reference;
}

toml::table parsed_toml(const std::filesystem::path& path) {
  const auto text = read_configuration(path);
  try {
    return toml::parse(text, path.string());
  } catch (const toml::parse_error& error) {
    throw ConfigError(
        fmt::format("{}:{}: {}", path.string(), error.source().begin.line, std::string(error.description())));
  }
}

void read_optional(TableReader& reader, std::string_view key, std::optional<std::string>& value) {
  if (!reader.has(key)) return;
  value.emplace();
  reader.text(key, *value);
}

void read_work(TableReader& reader, const std::filesystem::path& path, SweepPlan& plan) {
  std::error_code none;
  if (reader.has("recording")) {
    if (reader.has("workload")) reader.complain("recording", "cannot be combined with workload");
    reader.text("recording", plan.recording);
    if (plan.recording.empty()) reader.refuse("recording", "a file");
    plan.recording = (path.parent_path() / plan.recording).string();
    return;
  }
  reader.need("workload");
  reader.text("workload", plan.workload);
  // A workload file in the folder of the sweep file takes precedence over a shipped one.
  const auto beside = path.parent_path() / plan.workload;
  if (plan.workload.ends_with(".toml") && std::filesystem::exists(beside, none)) plan.workload = beside.string();
}

}  // namespace

SweepPlan read_sweep(const std::filesystem::path& path) {
  const auto table = parsed_toml(path);
  TableReader reader(table, path.string(), "");
  SweepPlan plan;
  reader.need("schema");
  std::uint64_t schema = 0;
  reader.number("schema", schema, 1, 1);
  plan.name = path.stem().string();
  reader.text("name", plan.name);
  read_work(reader, path, plan);
  read_optional(reader, "nic", plan.nic);
  read_optional(reader, "host", plan.host);
  read_optional(reader, "topology", plan.topology);
  reader.text("engine", plan.engine);
  reader.flag("waterfall", plan.waterfall);
  plan.faults = texts(reader, "faults");
  plan.metrics = texts(reader, "metrics");
  plan.seeds = plan.is_of_recording() && !reader.has("seeds") ? std::vector{rerun::recorded_seed(plan.recording)}
                                                              : read_seeds(reader);
  if (const auto* set = table_of(reader, "set"))
    each_key(*set, "", [&](const std::string& key, const toml::node& node) {
      plan.sets.push_back(fmt::format("{}={}", key, value_text(reader, key, node)));
    });
  if (const auto* vary = table_of(reader, "vary")) plan.axes = read_axes(reader, *vary);
  if (const auto* list = reader.find("reference")) {
    if (!list->is_array_of_tables()) reader.refuse("reference", "[[reference]]");
    std::size_t number = 0;
    for (const auto& node : *list->as_array())
      plan.references.push_back(
          read_reference({*node.as_table(), path.string(), fmt::format("reference[{}]", number++)}));
  }
  reader.finish();
  return plan;
}

}  // namespace rnicsim::sim::sweep
