// Where two recorded traces first differ.
#pragma once

#include <string>

#include "sim/recording/trace_file.h"

namespace rnicsim::sim {

struct TraceDifference {
  bool equal;          // all events are; the headers need not be
  std::string header;  // lines on how the headers differ; empty: they don't
  std::string events;  // "equal: ..." or the first divergence, with the last events of its QP
};

// A line for each member, and each parameter, in which they differ.
std::string compare_headers(const TraceHeader& a, const TraceHeader& b);
// Reads both up to the first divergence, or to their ends. TraceError: one of them is not readable that far.
TraceDifference compare_traces(TraceReader& a, TraceReader& b);

// `rnicsim diff`: prints; 0 equal, 1 different, 2 not readable.
int diff_traces(const std::string& a, const std::string& b);

}  // namespace rnicsim::sim
