// SPDX-License-Identifier: Apache-2.0
// Finds the first difference of two recorded traces.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/trace_file/divergence.h"
#include "sim/trace_file/trace_reader.h"

namespace rnicsim::sim {

// A member of the headers that differs: "seed", or a parameter's path.
struct HeaderDifference {
  std::string name, a, b;
  bool is_parameter;
  bool is_in_both = true;  // false: only one trace has this parameter
};
std::vector<HeaderDifference> compare_headers(const TraceHeader& a, const TraceHeader& b);

struct TraceDifference {
  bool equal;          // all events are equal; the headers may still differ
  std::string header;  // lines about differences of the headers; empty: none
  std::string events;  // "equal: ..." or the first divergence, with the last events of its QP
  std::vector<HeaderDifference> headers{};
  std::optional<Divergence> first{};  // nullopt: equal
};
// Compares the headers only; events are not read yet.
TraceDifference begin_difference(const TraceReader& a, const TraceReader& b);
void set_divergence(TraceDifference& difference, Divergence first);

// Reads both traces up to the first divergence, or to their ends. TraceError: a trace cannot be read that far.
TraceDifference compare_traces(TraceReader& a, TraceReader& b);

// `rnicsim diff`: prints the result. Returns 0: equal, 1: different, 2: not readable.
int diff_traces(const std::string& a, const std::string& b);

}  // namespace rnicsim::sim
