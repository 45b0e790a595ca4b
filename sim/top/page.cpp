// SPDX-License-Identifier: Apache-2.0
#include "sim/top/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

namespace rnicsim::sim::top {
namespace {

std::string short_time(double ps) {
  struct Unit {
    double ps;
    const char* name;
  };
  for (const auto& unit : {Unit{1e12, "s"}, Unit{1e9, "ms"}, Unit{1e6, "us"}, Unit{1e3, "ns"}})
    if (ps >= unit.ps) return fmt::format("{:.4g} {}", ps / unit.ps, unit.name);
  return fmt::format("{:.0f} ps", ps);
}

std::string percent(std::optional<double> value) {
  return value ? fmt::format("{:.1f}%", 100 * std::min(*value, 1.0)) : "-";
}

struct Column {
  const char* name;
  std::size_t width;
  std::function<std::string(const AdapterView&)> text;
};

std::string gigabits(double bits) { return fmt::format("{:.2f}", bits / 1e9); }
std::string millions(double number) { return fmt::format("{:.3f}", number / 1e6); }

// The last columns are left out on a narrow terminal; the busiest resource is always shown after them.
const std::vector<Column>& columns() {
  static const std::vector<Column> all{
      {"tx Gb/s", 8, [](const AdapterView& view) { return gigabits(view.transmitted); }},
      {"rx Gb/s", 8, [](const AdapterView& view) { return gigabits(view.received); }},
      {"tx Mp/s", 8, [](const AdapterView& view) { return millions(view.packets_sent); }},
      {"rx Mp/s", 8, [](const AdapterView& view) { return millions(view.packets_received); }},
      {"qpc", 7, [](const AdapterView& view) { return percent(view.qpc); }},
      {"mtt", 7, [](const AdapterView& view) { return percent(view.mtt); }},
      {"retries", 8, [](const AdapterView& view) { return fmt::format("{:.0f}", view.retries); }},
      {"db M/s", 8, [](const AdapterView& view) { return millions(view.doorbells); }},
      {"cqe M/s", 8, [](const AdapterView& view) { return millions(view.completions); }},
      {"cqc", 7, [](const AdapterView& view) { return percent(view.cqc); }},
      {"mpt", 7, [](const AdapterView& view) { return percent(view.mpt); }},
  };
  return all;
}

constexpr std::size_t kBusiestWidth = 19;

std::string busiest(const AdapterView& view) {
  if (view.shares.empty() || view.shares.front().value == 0) return "-";
  return fmt::format("{} {:.0f}%", view.shares.front().resource, 100 * std::min(1.0, view.shares.front().value));
}

// Adds a section with one line for each adapter for which `text` returns a text.
template <class Text>
void add_section(Page& page, const std::string& heading, const std::vector<const AdapterView*>& adapters,
                 Line::Kind kind, Text text) {
  std::vector<Line> lines;
  for (const AdapterView* adapter : adapters)
    if (auto line = text(*adapter); !line.empty())
      lines.push_back({fmt::format("  {}: {}", adapter->label, line), kind});
  if (lines.empty()) return;
  page.body.push_back({});
  page.body.push_back({heading, Line::Kind::heading});
  page.body.insert(page.body.end(), lines.begin(), lines.end());
}

std::string shares_text(const AdapterView& view) {
  std::vector<std::string> words;
  for (const auto& share : view.shares)
    if (share.value > 0) words.push_back(fmt::format("{} {:.1f}%", share.resource, 100 * std::min(1.0, share.value)));
  return fmt::format("{}", fmt::join(words, "  "));
}

std::string troubles_text(const AdapterView& view) {
  std::vector<std::string> words;
  for (const auto& trouble : view.troubles) {
    words.push_back(fmt::format("{} {}", trouble.counter, trouble.total));
    if (trouble.grown > 0) words.back() += fmt::format(" (+{:.0f})", trouble.grown);
  }
  return fmt::format("{}", fmt::join(words, "  "));
}

std::vector<const AdapterView*> ordered(const View& view, Order order) {
  std::vector<const AdapterView*> adapters;
  for (const auto& adapter : view.adapters) adapters.push_back(&adapter);
  const auto key = [order](const AdapterView* adapter) {
    switch (order) {
      case Order::host: return 0.0;
      case Order::transmitted: return adapter->transmitted;
      case Order::received: return adapter->received;
      case Order::retries: return adapter->retries;
      case Order::busiest: return adapter->shares.empty() ? 0.0 : adapter->shares.front().value;
    }
    return 0.0;
  };
  std::ranges::stable_sort(adapters, std::greater(), key);
  return adapters;
}

void add_table(Page& page, const std::vector<const AdapterView*>& adapters, std::size_t width) {
  std::size_t labels = 5;
  for (const AdapterView* adapter : adapters) labels = std::max(labels, adapter->label.size());
  std::size_t used = labels + kBusiestWidth + 1;
  std::vector<const Column*> shown;
  for (const Column& column : columns()) {
    if (used + column.width > width) break;
    used += column.width;
    shown.push_back(&column);
  }
  std::string heading = fmt::format("{:<{}}", "host", labels);
  for (const Column* column : shown) heading += fmt::format("{:>{}}", column->name, column->width);
  page.head.push_back({heading + "  busiest", Line::Kind::heading});
  for (const AdapterView* adapter : adapters) {
    std::string row = fmt::format("{:<{}}", adapter->label, labels);
    for (const Column* column : shown) row += fmt::format("{:>{}}", column->text(*adapter), column->width);
    page.body.push_back(
        {row + "  " + busiest(*adapter), adapter->retries > 0 ? Line::Kind::trouble : Line::Kind::plain});
  }
}

void add_programs(Page& page, const Snapshot& snapshot) {
  if (snapshot.programs.empty()) return;
  page.body.push_back({});
  page.body.push_back({"programs", Line::Kind::heading});
  for (const auto& program : snapshot.programs) {
    const std::size_t threads = program.threads.size();
    page.body.push_back(
        {fmt::format("  {}: {}: {}{}", program.host, program.name,
                     threads > 1 ? fmt::format("{} threads: ", threads) : "", fmt::join(program.threads, ", "))});
  }
}

void add_switches(Page& page, const View& view) {
  if (view.switches.empty()) return;
  page.body.push_back({});
  page.body.push_back({"switches", Line::Kind::heading});
  for (const auto& box : view.switches)
    page.body.push_back({fmt::format("  {}: {} Gb/s  {} Mframes/s  at most {} waiting{}", box.label, gigabits(box.bits),
                                     millions(box.frames), box.most_waiting,
                                     box.unknown != 0 ? fmt::format("  {} dropped", box.unknown) : "")});
}

void add_head(Page& page, const View& view) {
  const Snapshot& snapshot = view.snapshot;
  std::size_t threads = 0;
  for (const auto& program : snapshot.programs) threads += program.threads.size();
  page.head.push_back({fmt::format("{} (pid {})", snapshot.command, snapshot.pid), Line::Kind::heading});
  std::string text = fmt::format("{} simulated", short_time(double(snapshot.time.ps)));
  if (view.speed) text += fmt::format(", {} a second", short_time(1e12 * *view.speed));
  if (!snapshot.programs.empty()) text += fmt::format("; {} programs, {} threads", snapshot.programs.size(), threads);
  if (!snapshot.work.empty()) text += "; " + snapshot.work;
  page.head.push_back({text});
}

}  // namespace

const char* to_string(Order order) {
  switch (order) {
    case Order::host: return "host";
    case Order::transmitted: return "tx";
    case Order::received: return "rx";
    case Order::retries: return "retries";
    case Order::busiest: return "busiest";
  }
  return "?";
}

Page make_page(const View& view, std::size_t width, Order order) {
  Page page;
  add_head(page, view);
  const auto adapters = ordered(view, order);
  add_table(page, adapters, width);
  add_section(page, "errors since the start (since the last update)", adapters, Line::Kind::trouble, troubles_text);
  add_programs(page, view.snapshot);
  add_switches(page, view);
  add_section(page, "how busy", adapters, Line::Kind::plain, shares_text);
  return page;
}

std::vector<Line> help_lines() {
  return {{"rnicsim top: state of a running simulation", Line::Kind::heading},
          {},
          {"q            quit; the simulation continues"},
          {"h            show or hide this help"},
          {"s            order of the hosts: by name, tx, rx, retries, busiest"},
          {"arrows, page up and down, home, end    scroll"},
          {},
          {"Rates are over simulated time, between the last two updates."},
          {"tx, rx       on the wire; Mp/s: million RoCE packets a second"},
          {"db, cqe      doorbells rung, completions written"},
          {"qpc, cqc, mpt, mtt    hit rates of the NIC's caches; -: no access"},
          {"retries      NAKs and timeouts that made the host send again"},
          {"busiest      the NIC's resource with the highest use"}};
}

}  // namespace rnicsim::sim::top
