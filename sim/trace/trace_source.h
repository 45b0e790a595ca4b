// SPDX-License-Identifier: Apache-2.0
// Reads a trace file through a filter. A filter by time or queue pair reads only the blocks that it needs, if the trace
// has an index.
#pragma once

#include <cstddef>
#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace/event_filter.h"
#include "sim/trace_file/trace_reader.h"

namespace rnicsim::sim {

class TraceSource {
 public:
  // ConfigError: the file cannot be opened, or the filter names a host or kind that does not exist. TraceError: no
  // valid trace.
  explicit TraceSource(const std::string& path, const FilterOptions& options = {});
  // Reads a stream. `name`: begins the text of errors.
  TraceSource(std::unique_ptr<std::istream> in, const std::string& name, const FilterOptions& options = {});

  const TraceHeader& header() const { return reader_.header(); }
  const std::string& path() const { return reader_.name(); }
  // Next event that passes the filter; nullopt or false: no more. TraceError.
  std::optional<TraceEvent> next();
  bool next(TraceEvent& event);
  // End of the trace, valid after the last event; the time of --to if the trace continues after it.
  Duration end() const { return end_; }
  // From now on blocks for which `wanted` is false may be left out; it is asked for each block in its turn. Call it
  // before the first event, and only without a filter.
  void read_only(std::function<bool(const TraceIndex& index, std::size_t block)> wanted);
  // As TraceReader::unknown().
  std::vector<std::string> unknown() const { return reader_.unknown(); }

 private:
  const std::unique_ptr<std::istream> in_;
  TraceReader reader_;
  const EventFilter filter_;
  Duration end_;
};

}  // namespace rnicsim::sim
