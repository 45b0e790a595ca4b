// SPDX-License-Identifier: Apache-2.0
// A recorded trace for Python: blocks of events, grouped by kind.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace/trace_source.h"

namespace rnicsim::sim::python {

// Events of one kind, each as a row of 64-bit words: time in ps, number of the host, the kind's fields.
struct EventRows {
  std::vector<std::uint64_t> words;
};

class TraceBlocks {
 public:
  // Throws as TraceSource does.
  TraceBlocks(const std::string& path, const FilterOptions& filter) : source_(path, filter) {}

  const TraceHeader& header() const { return source_.header(); }
  // The next `most` events that pass the filter, by kind; nullptr: no event of that kind. All nullptr: end of the
  // trace. TraceError: the trace is damaged; all events before the damage have been returned.
  using Block = std::array<std::shared_ptr<EventRows>, kEventKinds>;
  Block next(std::size_t most);
  // As TraceReader::unknown().
  std::vector<std::string> unknown() const { return source_.unknown(); }

 private:
  TraceSource source_;
  bool ended_ = false;
  std::optional<std::string> damage_;  // error to throw at the next call
};

}  // namespace rnicsim::sim::python
