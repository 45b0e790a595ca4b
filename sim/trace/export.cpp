#include "sim/trace/export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sim/json.h"
#include "sim/text_number.h"
#include "sim/trace/named_field.h"
#include "sim/trace/text_output.h"

namespace rnicsim::sim {
namespace {

// doorbell_refused has a field with the name of the member for the event's kind.
constexpr std::string_view kKind = "kind", kDoorbellKind = "doorbell_kind";

std::string_view member_name(const FieldInfo& field) { return field.name == kKind ? kDoorbellKind : field.name; }

NamedField field_of_member(std::string_view member) { return NamedField(member == kDoorbellKind ? kKind : member); }

void append_value(std::string& out, const FieldInfo& field, std::uint64_t value, std::string_view quote) {
  if (const char* name = value_name(field, value))
    ((out += quote) += name) += quote;
  else
    append_digits(out, value);
}

void append_members(std::string& out, const TraceEvent& event) {
  const auto& fields = info(event.kind).fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!fields[i].always && event.fields[i] == 0) continue;
    ((out += ",\"") += member_name(fields[i])) += "\":";
    append_value(out, fields[i], event.fields[i], "\"");
  }
}

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

bool export_trace(TraceSource& trace, TraceFormat format, std::FILE* file) {
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
