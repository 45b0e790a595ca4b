// SPDX-License-Identifier: Apache-2.0
// Likely cause of a difference between two traces: the block of the first event that differs, and the differences of
// the configurations.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/trace_file/trace_diff.h"

namespace rnicsim::sim {

struct Cause {
  std::string block;       // "nic.port of h0"; empty: only the ends of the traces differ
  std::string decided_by;  // mechanism that decides time and contents of the event: "the transmit pipeline"
  std::string step;        // time since the event before, in A and in B; empty: no event before
  // Differences of the headers: parameters that act on this block (all parameters, if no block is known), commands,
  // seed, version.
  std::vector<HeaderDifference> likely;
  std::vector<HeaderDifference> elsewhere;  // other parameters
  std::vector<HeaderDifference> one_sided;  // parameters that only one trace's version has
};
Cause cause_of(const TraceDifference& difference, std::span<const std::string> hosts);
// The most likely cause, in one line.
std::string verdict_of(const Cause& cause);
// Two lines: "first in: ..." and "cause: ...".
std::string to_text(const Cause& cause);

}  // namespace rnicsim::sim
