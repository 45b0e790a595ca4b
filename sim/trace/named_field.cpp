// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/named_field.h"

#include <algorithm>

namespace rnicsim::sim {

NamedField::NamedField(std::string_view name) {
  for (std::size_t kind = 0; kind < kEventKinds; ++kind) {
    const auto& fields = info(EventKind(kind)).fields;
    const auto found = std::ranges::find(fields, name, &FieldInfo::name);
    positions_[kind] = found == fields.end() ? kNowhere : static_cast<std::uint8_t>(found - fields.begin());
  }
}

bool NamedField::exists() const {
  return std::ranges::any_of(positions_, [](std::uint8_t position) { return position != kNowhere; });
}

const FieldInfo* NamedField::info_in(EventKind kind) const {
  const auto position = positions_[std::size_t(kind)];
  return position == kNowhere ? nullptr : &info(kind).fields[position];
}

}  // namespace rnicsim::sim
