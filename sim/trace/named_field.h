// SPDX-License-Identifier: Apache-2.0
// Finds a field by its name in all kinds of events.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/trace_file/format.h"

namespace rnicsim::sim {

inline constexpr auto kEventKinds = std::size_t(EventKind::count);

class NamedField {
 public:
  explicit NamedField(std::string_view name);

  // True: at least one kind has a field of this name.
  bool exists() const;
  // nullptr: events of this kind have no such field.
  const FieldInfo* info_in(EventKind kind) const;
  // nullopt: events of this kind have no such field.
  std::optional<std::uint64_t> of(const TraceEvent& event) const {
    const auto position = positions_[std::size_t(event.kind)];
    return position == kNowhere ? std::nullopt : std::optional(event.fields[position]);
  }

 private:
  static constexpr std::uint8_t kNowhere = 0xff;
  static_assert(TraceEvent::kMostFields < kNowhere);

  std::array<std::uint8_t, kEventKinds> positions_;
};

}  // namespace rnicsim::sim
