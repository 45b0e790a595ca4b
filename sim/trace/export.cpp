// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/config_error.h"
#include "sim/results/json.h"
#include "sim/results/text_number.h"
#include "sim/trace/event_members.h"
#include "sim/trace/named_field.h"
#include "sim/trace/text_output.h"
#include "sim/trace/timeline.h"

namespace rnicsim::sim {
namespace {

std::string quoted(const std::string& text) { return Json(text).dump(); }

void append_json(std::string& out, const TraceEvent& event, const std::vector<std::string>& hosts) {
  append_digits(out += R"({"time_ps":)", std::uint64_t(event.at.ps));
  (out += R"(,"host":)") += hosts[event.host];
  ((out += R"(,"kind":")") += info(event.kind).name) += '"';
  append_members(out, event);
  out += '}';
}

std::vector<std::string> all_columns() {
  std::vector<std::string> columns;
  for (std::size_t kind = 1; kind < kEventKinds; ++kind)
    for (const auto& field : info(EventKind(kind)).fields)
      if (std::ranges::find(columns, member_name(field)) == columns.end()) columns.emplace_back(member_name(field));
  return columns;
}

void append_csv(std::string& out, const TraceEvent& event, const std::vector<std::string>& hosts,
                const std::vector<NamedField>& columns) {
  append_digits(out, std::uint64_t(event.at.ps));
  ((((out += ',') += hosts[event.host]) += ',') += info(event.kind).name);
  for (const auto& column : columns) {
    out += ',';
    if (const auto* field = column.info_in(event.kind)) append_value(out, *field, *column.of(event), "");
  }
}

}  // namespace

void check_exportable(TraceFormat format) {
  if (format != TraceFormat::pcapng) return;
  throw ConfigError(
      "--format pcapng: a trace has no frames, only headers and CRCs of payload; record frames by --pcap "
      "of the run");
}

bool export_trace(TraceSource& trace, TraceFormat format, std::FILE* file) {
  check_exportable(format);
  if (format == TraceFormat::perfetto) return export_timeline(trace, file);
  TextOutput out(file);
  auto& text = out.text();
  auto hosts = trace.header().hosts;
  TraceEvent event;
  if (format == TraceFormat::jsonl) {
    std::ranges::transform(hosts, hosts.begin(), quoted);
    for (; trace.next(event); out.end_line()) append_json(text, event, hosts);
    return out.flush();
  }
  const auto names = all_columns();
  std::vector<NamedField> columns;
  for (const auto& name : names) columns.push_back(field_of_member(name));
  text = fmt::format("time_ps,host,kind,{}", fmt::join(names, ","));
  out.end_line();
  for (; trace.next(event); out.end_line()) append_csv(text, event, hosts, columns);
  return out.flush();
}

}  // namespace rnicsim::sim
