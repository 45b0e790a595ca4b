// Why two traces differ, as far as they tell: the block of the first event that differs, and what was configured
// otherwise.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/recording/trace_diff.h"

namespace rnicsim::sim {

struct Cause {
  std::string block;       // "nic.port of h0"; empty: only the ends of the traces differ
  std::string decided_by;  // what makes this block do so: "the transmit pipeline"
  std::string step;        // from the event before, in A and in B; empty: there is none
  // Parameters of this block or of what it depends on first; then all others, and what else the headers have.
  std::vector<HeaderDifference> differences;
};
Cause cause_of(const TraceDifference& difference, std::span<const std::string> hosts);
// "first in: ..." and "cause: ...", a line each.
std::string to_text(const Cause& cause);

}  // namespace rnicsim::sim
