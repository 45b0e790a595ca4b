// Fields of an event for other programs: numbers as numbers, values with a name as that name.
#pragma once

#include <string>
#include <string_view>

#include "sim/trace/named_field.h"

namespace rnicsim::sim {

// The name that a field has beside time, host and kind of its event.
std::string_view member_name(const FieldInfo& field);
NamedField field_of_member(std::string_view member);

// `quote` encloses a name.
void append_value(std::string& out, const FieldInfo& field, std::uint64_t value, std::string_view quote);
// As members of a JSON object, a comma before each; without those that are 0 and that `show` leaves out.
void append_members(std::string& out, const TraceEvent& event);

}  // namespace rnicsim::sim
