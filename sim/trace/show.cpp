// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/config/config_error.h"
#include "sim/results/text_number.h"
#include "sim/trace/named_field.h"
#include "sim/trace/text_output.h"

namespace rnicsim::sim {
namespace {

// Width up to which columns are aligned, in characters.
constexpr std::size_t kWidth = 16;

// A column: time, host, kind, or a field.
class Column {
 public:
  explicit Column(const std::string& name) : name_(name), field_(name) {
    if (!is("time") && !is("host") && !is("kind") && !field_.exists())
      throw ConfigError(fmt::format("--columns: no event has a field '{}'", shown(name)));
  }

  std::string title() const { return is("time") ? "time (us)" : name_; }
  void append(std::string& out, const TraceEvent& event, const TraceHeader& header) const {
    if (is("time")) return append_microseconds(out, event.at);
    if (is("host")) return void(out += header.hosts[event.host]);
    if (is("kind")) return void(out += info(event.kind).name);
    if (const auto* field = field_.info_in(event.kind)) return append_text(out, *field, *field_.of(event));
    out += '-';
  }

 private:
  bool is(std::string_view name) const { return name_ == name; }

  const std::string name_;
  const NamedField field_;
};

template <class Cell>
void append_row(TextOutput& out, const std::vector<Column>& columns, Cell&& append_cell) {
  auto& text = out.text();
  for (const auto& column : columns) {
    const auto begin = text.size();
    append_cell(column);
    if (&column == &columns.back()) break;
    text.resize(std::max(text.size(), begin + kWidth), ' ');
    text += "  ";
  }
  out.end_line();
}

}  // namespace

bool show_trace(TraceSource& trace, const ShowOptions& options, std::FILE* file) {
  const std::vector<Column> columns(options.columns.begin(), options.columns.end());
  const auto& header = trace.header();
  TextOutput out(file);
  auto& text = out.text();
  if (!columns.empty()) append_row(out, columns, [&](const Column& column) { text += column.title(); });
  TraceEvent event;
  for (std::uint64_t lines = 0; (!options.most || lines < *options.most) && trace.next(event); ++lines) {
    if (columns.empty()) {
      append_text(text, event, header.hosts);
      out.end_line();
    } else {
      append_row(out, columns, [&](const Column& column) { column.append(text, event, header); });
    }
  }
  return out.flush();
}

}  // namespace rnicsim::sim
