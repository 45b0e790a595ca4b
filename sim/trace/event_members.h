// SPDX-License-Identifier: Apache-2.0
// Fields of an event in the exchange formats: numbers as numbers, named values as their names.
#pragma once

#include <string>
#include <string_view>

#include "sim/trace/named_field.h"

namespace rnicsim::sim {

// Name of the field in the exchange formats, unique beside `time`, `host` and `kind` of the event.
std::string_view member_name(const FieldInfo& field);
NamedField field_of_member(std::string_view member);

// `quote`: put before and after a name.
void append_value(std::string& out, const FieldInfo& field, std::uint64_t value, std::string_view quote);
// Appends the fields as members of a JSON object, each after a comma. A field that is 0 and not shown by `trace show`
// is left out.
void append_members(std::string& out, const TraceEvent& event);

}  // namespace rnicsim::sim
