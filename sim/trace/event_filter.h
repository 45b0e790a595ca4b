// SPDX-License-Identifier: Apache-2.0
// Selects events of a trace for a command.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/trace/named_field.h"
#include "sim/trace_file/format.h"
#include "sim/trace_file/trace_index.h"

namespace rnicsim::sim {

struct FilterOptions {
  std::vector<std::string> hosts;  // names; empty: all
  std::vector<std::string> kinds;  // names; "packet*": all names with this prefix; empty: all
  std::vector<std::uint32_t> qps;
  std::vector<std::uint32_t> psns;
  std::optional<Duration> from, to;  // both inclusive
};

class EventFilter {
 public:
  // ConfigError: the trace has no such host, or there is no such kind.
  EventFilter(const FilterOptions& options, const TraceHeader& header);

  bool takes(const TraceEvent& event) const;
  // True: blocks() may leave out blocks.
  bool chooses_blocks() const { return from_ || to_ || !qps_.empty(); }
  // For each block of the index: whether it may have an event that passes the filter.
  std::vector<bool> blocks(const TraceIndex& index) const;
  // True: neither this event nor a later one passes the filter.
  bool is_past(const TraceEvent& event) const { return to_ && event.at > *to_; }
  std::optional<Duration> to() const { return to_; }

 private:
  std::vector<bool> hosts_;  // by number
  std::bitset<kEventKinds> kinds_;
  const std::set<std::uint32_t> qps_, psns_;
  const std::optional<Duration> from_, to_;
};

}  // namespace rnicsim::sim
