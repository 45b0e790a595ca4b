// SPDX-License-Identifier: Apache-2.0
#include "sim/trace_file/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace rnicsim::sim {
namespace {

constexpr std::size_t kMostKinds = 1024;
constexpr std::size_t kMostFileFields = 256;
constexpr std::size_t kKindsOfVersion1 = std::size_t(EventKind::awaited) + 1;

// Removes the text before `separator` from the front of `rest`; nullopt: there is no separator.
std::optional<std::string_view> take_until(std::string_view& rest, std::string_view separator) {
  const auto end = rest.find(separator);
  if (end == rest.npos) return {};
  const auto taken = rest.substr(0, end);
  rest.remove_prefix(end + separator.size());
  return taken;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

const KindInfo* known_kind(std::string_view name) {
  for (std::size_t kind = 0; kind < std::size_t(EventKind::count); ++kind)
    if (name == info(EventKind(kind)).name) return &info(EventKind(kind));
  return nullptr;
}

[[noreturn]] void refuse_kind(std::size_t number, std::string_view why) {
  throw TraceError(fmt::format("the schema in the header is wrong: kind {} {}", number, why));
}

std::uint8_t position_of(const FileKind& kind, std::size_t number, std::string_view name, std::string_view type) {
  if (kind.known == nullptr) return FileKind::kUnknown;
  const auto& fields = kind.known->fields;
  const auto found = std::ranges::find(fields, name, &FieldInfo::name);
  if (found == fields.end()) return FileKind::kUnknown;
  if (type != type_text(found->style))
    refuse_kind(number, fmt::format("has a field '{}' of another type than '{}'", name, type_text(found->style)));
  return std::uint8_t(found - fields.begin());
}

void add_field(FileKind& kind, std::size_t number, std::string_view text) {
  const auto name = take_until(text, " ");
  if (!name || !is_name(*name) || text.empty()) refuse_kind(number, "has a field without a name or a type");
  if (std::ranges::find(kind.fields, *name) != kind.fields.end())
    refuse_kind(number, fmt::format("has the field '{}' twice", *name));
  if (kind.fields.size() == kMostFileFields) refuse_kind(number, "has too many fields");
  kind.positions.push_back(position_of(kind, number, *name, text));
  kind.fields.emplace_back(*name);
}

FileKind parse_kind(std::string_view line, std::size_t number) {
  FileKind kind;
  const auto name = take_until(line, ":");
  if (!name || !is_name(*name)) refuse_kind(number, "has no name");
  kind.name = *name;
  kind.known = known_kind(*name);
  while (!line.empty()) {
    if (!line.starts_with(' ')) refuse_kind(number, "has a field without a name or a type");
    line.remove_prefix(1);
    auto field = take_until(line, ",");
    if (!field) field = std::exchange(line, {});
    add_field(kind, number, *field);
  }
  std::vector<std::uint8_t> own(kind.positions.size());
  std::iota(own.begin(), own.end(), std::uint8_t{0});
  kind.is_own = kind.known != nullptr && kind.positions == own;
  kind.is_whole =
      kind.known != nullptr && std::ranges::find(kind.positions, FileKind::kUnknown) == kind.positions.end();
  return kind;
}

}  // namespace

std::string_view type_text(FieldStyle style) {
  constexpr std::array<std::string_view, std::size_t(FieldStyle::count)> kTexts{
      "number",       "hex",          "number B",      "duration ps",     "packet_opcode",  "send_opcode",
      "cqe_opcode",   "cqe_syndrome", "event_type",    "qp_state",        "command_opcode", "command_status",
      "queue",        "drop_cause",   "doorbell_kind", "doorbell_reason", "refused_what",   "refused_why",
      "abort_reason", "fault_action", "cm_message",    "cm_state",        "tlp_direction",  "tlp_type"};
  static_assert(!kTexts.back().empty());
  return kTexts.at(std::size_t(style));
}

std::vector<std::string> own_schema() {
  std::vector<std::string> lines;
  for (std::size_t kind = 0; kind < std::size_t(EventKind::count); ++kind) {
    const auto& row = info(EventKind(kind));
    std::string line = row.name;
    for (const auto& field : row.fields) {
      line += &field == row.fields.data() ? ": " : ", ";
      line.append(field.name).append(1, ' ').append(type_text(field.style));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

TraceSchema TraceSchema::of_version_1() {
  TraceSchema schema;
  for (std::size_t number = 0; number < kKindsOfVersion1; ++number) {
    const auto& row = info(EventKind(number));
    FileKind kind{.name = row.name, .known = &row, .fields = {}, .positions = {}, .is_own = true, .is_whole = true};
    for (const auto& field : row.fields) {
      kind.positions.push_back(std::uint8_t(kind.fields.size()));
      kind.fields.emplace_back(field.name);
    }
    schema.kinds_.push_back(std::move(kind));
  }
  return schema;
}

TraceSchema::TraceSchema(std::span<const std::string> lines) {
  if (lines.size() > kMostKinds) throw TraceError("the schema in the header has too many kinds");
  std::set<std::string_view> names;
  kinds_.reserve(lines.size());
  for (const auto& line : lines) {
    const auto& kind = kinds_.emplace_back(parse_kind(line, kinds_.size()));
    if (!names.insert(kind.name).second) refuse_kind(kinds_.size() - 1, "has the name of a kind before");
  }
  if (!names.contains(info(EventKind::end).name)) throw TraceError("the schema in the header has no kind 'end'");
}

}  // namespace rnicsim::sim
