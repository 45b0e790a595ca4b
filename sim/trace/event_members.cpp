// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/event_members.h"

#include "sim/results/text_number.h"

namespace rnicsim::sim {
namespace {

// The member "kind" is the event's kind, so the field `kind` of doorbell_refused gets another name.
constexpr std::string_view kKind = "kind", kDoorbellKind = "doorbell_kind";

}  // namespace

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

}  // namespace rnicsim::sim
