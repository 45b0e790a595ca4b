// A recorded trace for Python: events by the block, those of a kind side by side.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace/trace_source.h"

namespace rnicsim::sim::python {

// Events of one kind. Each is a row of 64-bit words: picoseconds, number of the host, the kind's fields.
struct EventRows {
  std::vector<std::uint64_t> words;
};

class TraceBlocks {
 public:
  // As TraceSource.
  TraceBlocks(const std::string& path, const FilterOptions& filter) : source_(path, filter) {}

  const TraceHeader& header() const { return source_.header(); }
  // The next `most` events that the filter takes, by kind; nullptr: none of that kind. All nullptr: the trace ends.
  // TraceError: the trace is damaged, and the events before the damage have been given.
  using Block = std::array<std::shared_ptr<EventRows>, kEventKinds>;
  Block next(std::size_t most);

 private:
  TraceSource source_;
  bool ended_ = false;
  std::optional<std::string> damage_;  // behind the events that were given last
};

}  // namespace rnicsim::sim::python
