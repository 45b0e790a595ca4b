#include "sim/trace/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "sim/json.h"

namespace rnicsim::sim {
namespace {

constexpr std::size_t kFlushBytes = 1 << 16;

// A number as such, an enumerator by its name.
std::string value_text(const FieldInfo& field, std::uint64_t value) {
  if (field.style == FieldStyle::number || field.style == FieldStyle::hex || field.style == FieldStyle::duration)
    return fmt::format("{}", value);
  auto name = to_text(field, value);
  const bool is_named = !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0;
  return is_named ? name : fmt::format("{}", value);
}

bool is_name(const std::string& text) { return std::isdigit(static_cast<unsigned char>(text.front())) == 0; }

// doorbell_refused has a field with the name of the column for the event's kind.
std::string_view member_name(const FieldInfo& field) {
  const std::string_view name = field.name;
  return name == "kind" ? "doorbell_kind" : name;
}

std::string quoted(const std::string& text) { return Json(text).dump(); }

void append_json(fmt::memory_buffer& out, const TraceEvent& event, const std::vector<std::string>& hosts) {
  const auto& kind = info(event.kind);
  auto at = std::back_inserter(out);
  fmt::format_to(at, R"({{"time_ps":{},"host":{},"kind":"{}")", event.at.ps, hosts[event.host], kind.name);
  for (std::size_t i = 0; i < kind.fields.size(); ++i) {
    const auto& field = kind.fields[i];
    if (!field.always && event.fields[i] == 0) continue;
    const auto value = value_text(field, event.fields[i]);
    const char* quote = is_name(value) ? "\"" : "";
    fmt::format_to(at, R"(,"{0}":{1}{2}{1})", member_name(field), quote, value);
  }
  fmt::format_to(at, "}}\n");
}

std::vector<std::string> all_columns() {
  std::vector<std::string> columns;
  for (std::size_t kind = 1; kind < kEventKinds; ++kind)
    for (const auto& field : info(EventKind(kind)).fields)
      if (std::ranges::find(columns, member_name(field)) == columns.end()) columns.emplace_back(member_name(field));
  return columns;
}

void append_csv(fmt::memory_buffer& out, const TraceEvent& event, const std::vector<std::string>& hosts,
                const std::vector<std::string>& columns) {
  const auto& fields = info(event.kind).fields;
  auto at = std::back_inserter(out);
  fmt::format_to(at, "{},{},{}", event.at.ps, hosts[event.host], info(event.kind).name);
  for (const auto& column : columns) {
    const auto found = std::ranges::find(fields, column, member_name);
    out.push_back(',');
    if (found != fields.end())
      fmt::format_to(at, "{}", value_text(*found, event.fields[std::size_t(found - fields.begin())]));
  }
  out.push_back('\n');
}

}  // namespace

bool export_trace(TraceSource& trace, TraceFormat format, std::FILE* out) {
  fmt::memory_buffer buffer;
  const auto flush = [&](std::size_t least) {
    if (buffer.size() < least) return true;
    const bool written = std::fwrite(buffer.data(), 1, buffer.size(), out) == buffer.size();
    buffer.clear();
    return written;
  };
  auto hosts = trace.header().hosts;
  if (format == TraceFormat::jsonl) std::ranges::transform(hosts, hosts.begin(), quoted);
  const auto columns = all_columns();
  if (format == TraceFormat::csv)
    fmt::format_to(std::back_inserter(buffer), "time_ps,host,kind,{}\n", fmt::join(columns, ","));
  while (const auto event = trace.next()) {
    if (format == TraceFormat::jsonl)
      append_json(buffer, *event, hosts);
    else
      append_csv(buffer, *event, hosts, columns);
    if (!flush(kFlushBytes)) return false;
  }
  return flush(0) && std::fflush(out) == 0;
}

}  // namespace rnicsim::sim
