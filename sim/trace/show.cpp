#include "sim/trace/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

// Columns are aligned up to this width.
constexpr int kWidth = 16;

void check_column(std::string_view name) {
  if (name == "time" || name == "host" || name == "kind") return;
  for (std::size_t kind = 0; kind < kEventKinds; ++kind)
    if (std::ranges::find(info(EventKind(kind)).fields, name, &FieldInfo::name) != info(EventKind(kind)).fields.end())
      return;
  throw ConfigError(fmt::format("--columns: no event has a field '{}'", shown(name)));
}

std::string cell(const TraceEvent& event, std::string_view column, const TraceHeader& header) {
  if (column == "time") return fmt::format("{}.{:06}", event.at.ps / 1'000'000, event.at.ps % 1'000'000);
  if (column == "host") return header.hosts[event.host];
  const auto& kind = info(event.kind);
  if (column == "kind") return kind.name;
  const auto found = std::ranges::find(kind.fields, column, &FieldInfo::name);
  return found == kind.fields.end() ? "-" : to_text(*found, event.fields[std::size_t(found - kind.fields.begin())]);
}

void append_row(fmt::memory_buffer& out, const std::vector<std::string>& cells) {
  auto at = std::back_inserter(out);
  for (std::size_t i = 0; i + 1 < cells.size(); ++i) fmt::format_to(at, "{:<{}}  ", cells[i], kWidth);
  fmt::format_to(at, "{}\n", cells.back());
}

}  // namespace

void show_trace(TraceSource& trace, const ShowOptions& options) {
  constexpr std::size_t kFlushBytes = 1 << 16;
  fmt::memory_buffer out;
  const auto flush = [&out](std::size_t least) {
    if (out.size() < least) return;
    std::fwrite(out.data(), 1, out.size(), stdout);
    out.clear();
  };
  for (const auto& column : options.columns) check_column(column);
  if (!options.columns.empty()) {
    auto names = options.columns;
    std::ranges::replace(names, std::string("time"), std::string("time (us)"));
    append_row(out, names);
  }
  for (std::uint64_t lines = 0; !options.most || lines < *options.most; ++lines) {
    const auto event = trace.next();
    if (!event) break;
    if (options.columns.empty()) {
      fmt::format_to(std::back_inserter(out), "{}\n", to_text(*event, trace.header().hosts));
    } else {
      std::vector<std::string> cells;
      for (const auto& column : options.columns) cells.push_back(cell(*event, column, trace.header()));
      append_row(out, cells);
    }
    flush(kFlushBytes);
  }
  flush(0);
}

}  // namespace rnicsim::sim
