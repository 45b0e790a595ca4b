// Which events of a trace a command is about.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/recording/format.h"

namespace rnicsim::sim {

inline constexpr auto kEventKinds = std::size_t(EventKind::count);

struct FilterOptions {
  std::vector<std::string> hosts;  // names; empty: all
  std::vector<std::string> kinds;  // names; "packet*": all that begin so; empty: all
  std::vector<std::uint32_t> qps;
  std::vector<std::uint32_t> psns;
  std::optional<Duration> from, to;  // both inclusive
};

class EventFilter {
 public:
  // ConfigError: the trace has no such host, or no trace has such a kind.
  EventFilter(const FilterOptions& options, const TraceHeader& header);

  bool takes(const TraceEvent& event) const;
  // Neither this event nor a later one is taken.
  bool is_past(const TraceEvent& event) const { return to_ && event.at > *to_; }

 private:
  std::set<std::uint32_t> hosts_;
  std::bitset<kEventKinds> kinds_;
  const std::set<std::uint32_t> qps_, psns_;
  const std::optional<Duration> from_, to_;
};

// The value of a kind's field with this name; nullopt: the kind has no such field.
std::optional<std::uint64_t> field_of(const TraceEvent& event, std::string_view name);

}  // namespace rnicsim::sim
