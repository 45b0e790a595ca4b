// A trace's file, with a filter in front.
#pragma once

#include <fstream>
#include <optional>
#include <string>

#include "sim/recording/trace_file.h"
#include "sim/trace/event_filter.h"

namespace rnicsim::sim {

class TraceSource {
 public:
  // ConfigError: the file cannot be opened, or the filter is not one of the trace. TraceError: not a trace.
  explicit TraceSource(const std::string& path, const FilterOptions& options = {});

  const TraceHeader& header() const { return reader_.header(); }
  const std::string& path() const { return reader_.name(); }
  // The next event that the filter takes; nullopt: there is none. TraceError.
  std::optional<TraceEvent> next();
  // The end of the trace, once next() gave nullopt; of a trace that was read up to --to: that time.
  Duration end() const { return end_; }

 private:
  std::ifstream file_;
  TraceReader reader_;
  const EventFilter filter_;
  Duration end_;
};

}  // namespace rnicsim::sim
