// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/results/counter_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "sim/adapter.h"
#include "sim/adapter_counters.h"
#include "sim/bench/number_text.h"
#include "sim/config/config.h"

namespace rnicsim::sim::bench {
namespace {

constexpr std::size_t kMostColumns = 8;   // in one table
constexpr std::size_t kMostSwitches = 4;  // with a column for each, unless all_counters is set

// The counters of one host or switch.
struct Column {
  std::string name;
  std::vector<CounterResult> counters;
};

std::string cell(const CounterResult& counter, double value) {
  if (!counter.derived()) return fmt::format("{:.0f}", value);
  return counter.unit == "b/s" ? scaled(value) : fmt::format("{:.4f}", value);
}
std::string cell(const CounterResult& counter) { return counter.known ? cell(counter, counter.value) : "-"; }

// The rows of counters that are not 0 in all columns.
std::vector<std::size_t> rows_of(std::span<const Column> columns) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < columns.front().counters.size(); ++row)
    if (std::ranges::any_of(columns, [&](const auto& column) { return column.counters[row].tells(); }))
      rows.push_back(row);
  return rows;
}

std::size_t width_of(const Column& column, const std::vector<std::size_t>& rows) {
  std::size_t width = 0;
  for (const auto row : rows) width = std::max(width, column.counters[row].path.size());
  return width;
}

std::string columns_text(std::span<const Column> columns) {
  const auto rows = rows_of(columns);
  const auto width = width_of(columns.front(), rows);
  std::string text = fmt::format("{:<{}}", "", width);
  for (const auto& column : columns) text += fmt::format(" {:>12}", column.name);
  text += '\n';
  for (const auto row : rows) {
    const auto& first = columns.front().counters[row];
    text += fmt::format("{:<{}}", first.path, width);
    for (const auto& column : columns) text += fmt::format(" {:>12}", cell(column.counters[row]));
    text += fmt::format("  {}\n", first.unit);
  }
  return text;
}

std::string all_text(std::span<const Column> columns) {
  std::string text;
  for (std::size_t first = 0; first < columns.size(); first += kMostColumns)
    text +=
        (first == 0 ? "" : "\n") + columns_text(columns.subspan(first, std::min(kMostColumns, columns.size() - first)));
  return text;
}

// One counter over several hosts or switches; a column that does not know the counter is left out.
struct Summary {
  double mean = 0, least = std::numeric_limits<double>::infinity(), most = -least;
  std::string of;  // the first column with the largest value
  std::size_t count = 0;
};

Summary summary_of(std::span<const Column* const> columns, std::size_t row) {
  Summary summary;
  for (const auto* column : columns) {
    const auto& counter = column->counters[row];
    if (!counter.known) continue;
    ++summary.count;
    summary.mean += counter.value;
    summary.least = std::min(summary.least, counter.value);
    if (counter.value <= summary.most) continue;
    summary.most = counter.value;
    summary.of = column->name;
  }
  if (summary.count != 0) summary.mean /= static_cast<double>(summary.count);
  return summary;
}

std::string summaries_text(const std::string& what, std::span<const Column> all, std::span<const Column* const> columns,
                           const std::vector<std::size_t>& rows, std::size_t width) {
  std::string text = fmt::format("{:<{}} {:>12} {:>12} {:>12}  {}\n", fmt::format("{}: {}", what, columns.size()),
                                 width, "mean", "least", "most", "where most");
  for (const auto row : rows) {
    const auto& counter = all.front().counters[row];
    const auto summary = summary_of(columns, row);
    if (summary.count == 0 || (summary.most == 0 && counter.kind != CounterResult::Kind::hit_rate)) continue;
    // The mean of whole numbers is rarely a whole number.
    const auto mean =
        counter.derived() || summary.mean >= 1e6 ? cell(counter, summary.mean) : fmt::format("{:.6g}", summary.mean);
    text += fmt::format("{:<{}} {:>12} {:>12} {:>12}  {} ({})\n", counter.path, width, mean,
                        cell(counter, summary.least), cell(counter, summary.most), summary.of, counter.unit);
  }
  return text;
}

std::vector<const Column*> columns_of(std::span<const Column> columns) {
  std::vector<const Column*> all;
  for (const auto& column : columns) all.push_back(&column);
  return all;
}

constexpr std::uint32_t kUnreached = ~0u;

// Distance of each switch from the nearest host, in cables.
std::vector<std::uint32_t> distances_from_hosts(const Topology& topology) {
  std::vector<std::uint32_t> distances(topology.nodes(), kUnreached);
  std::fill_n(distances.begin(), topology.interfaces.size(), 0u);
  for (bool changed = true; std::exchange(changed, false);)
    for (const auto& [from, to] : topology.cables)
      for (const auto& [near, far] : {std::pair(from, to), std::pair(to, from)})
        if (distances[near] != kUnreached && topology.is_switch(far) && distances[near] + 1 < distances[far]) {
          distances[far] = distances[near] + 1;
          changed = true;
        }
  return {distances.begin() + static_cast<std::ptrdiff_t>(topology.interfaces.size()), distances.end()};
}

std::string stem_of(const std::string& name) { return name.substr(0, name.find_last_not_of("0123456789") + 1); }

}  // namespace

std::vector<SwitchLayer> switch_layers(const Topology& topology) {
  const auto distances = distances_from_hosts(topology);
  auto present = distances;
  std::ranges::sort(present);
  present.erase(std::ranges::unique(present).begin(), present.end());
  std::vector<SwitchLayer> layers;
  for (const auto distance : present) {
    SwitchLayer layer;
    for (std::size_t i = 0; i < distances.size(); ++i)
      if (distances[i] == distance) layer.switches.push_back(i);
    layer.name = stem_of(topology.switches[layer.switches.front()]);
    const bool alike =
        std::ranges::all_of(layer.switches, [&](std::size_t i) { return stem_of(topology.switches[i]) == layer.name; });
    if (!alike || layer.name.empty() || std::ranges::count(layers, layer.name, &SwitchLayer::name) != 0)
      layer.name = fmt::format("layer {}", layers.size() + 1);
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::string hosts_table(const BenchResult& result) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < result.system.adapters(); ++i)
    columns.push_back({result.system.adapter(i).label(), host_counters(result, i)});
  if (columns.size() <= kMostColumns || result.all_counters) return all_text(columns);
  const auto rows = rows_of(columns);
  return summaries_text("hosts", columns, columns_of(columns), rows, width_of(columns.front(), rows));
}

std::string switches_table(const BenchResult& result) {
  const auto& topology = result.system.config().topology;
  std::vector<Column> columns;
  for (std::size_t i = 0; i < result.system.switches(); ++i)
    columns.push_back({topology.switches[i], switch_counters(result, i)});
  if (columns.empty()) return {};
  if (columns.size() <= kMostSwitches || result.all_counters) return all_text(columns);
  const auto rows = rows_of(columns);
  std::string text;
  for (const auto& layer : switch_layers(topology)) {
    std::vector<const Column*> of_layer;
    for (const auto i : layer.switches) of_layer.push_back(&columns[i]);
    text += (text.empty() ? "" : "\n") + summaries_text(layer.name, columns, of_layer, rows,
                                                        std::max<std::size_t>(width_of(columns.front(), rows), 16));
  }
  return text;
}

}  // namespace rnicsim::sim::bench
