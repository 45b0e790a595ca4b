// Where two recorded traces first differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/recording/divergence.h"
#include "sim/recording/trace_file.h"

namespace rnicsim::sim {

// A member of two headers that is not the same: "seed", or a parameter's path.
struct HeaderDifference {
  std::string name, a, b;
  bool is_parameter;
  bool is_in_both = true;  // else one of the two does not know this parameter
};
std::vector<HeaderDifference> compare_headers(const TraceHeader& a, const TraceHeader& b);

struct TraceDifference {
  bool equal;          // all events are; the headers need not be
  std::string header;  // lines on how the headers differ; empty: they don't
  std::string events;  // "equal: ..." or the first divergence, with the last events of its QP
  std::vector<HeaderDifference> headers{};
  std::optional<Divergence> first{};  // nullopt: equal
};
// With what is said of the headers; no word on the events yet.
TraceDifference begin_difference(const TraceReader& a, const TraceReader& b);
void set_divergence(TraceDifference& difference, Divergence first);

// Reads both up to the first divergence, or to their ends. TraceError: one of them is not readable that far.
TraceDifference compare_traces(TraceReader& a, TraceReader& b);

// `rnicsim diff`: prints; 0 equal, 1 different, 2 not readable.
int diff_traces(const std::string& a, const std::string& b);

}  // namespace rnicsim::sim
