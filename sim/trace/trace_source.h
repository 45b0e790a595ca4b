// A trace's file, with a filter in front.
#pragma once

#include <istream>
#include <memory>
#include <optional>
#include <string>

#include "sim/recording/trace_file.h"
#include "sim/trace/event_filter.h"

namespace rnicsim::sim {

class TraceSource {
 public:
  // ConfigError: the file cannot be opened, or the filter is not one of the trace. TraceError: not a trace.
  explicit TraceSource(const std::string& path, const FilterOptions& options = {});
  // The same of a stream. `name`: what errors begin with.
  TraceSource(std::unique_ptr<std::istream> in, const std::string& name, const FilterOptions& options = {});

  const TraceHeader& header() const { return reader_.header(); }
  const std::string& path() const { return reader_.name(); }
  // The next event that the filter takes; nullopt, false: there is none. TraceError.
  std::optional<TraceEvent> next();
  bool next(TraceEvent& event);
  // The end of the trace, once next() gave no event; of a trace that goes on behind --to: that time.
  Duration end() const { return end_; }

 private:
  const std::unique_ptr<std::istream> in_;
  TraceReader reader_;
  const EventFilter filter_;
  Duration end_;
};

}  // namespace rnicsim::sim
