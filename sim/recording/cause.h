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
  std::string decided_by;  // the mechanism that decides its time and contents: "the transmit pipeline"
  std::string step;        // from the event before, in A and in B; empty: there is none
  // Differences of the headers: parameters that act on this block (all, if there is no block), commands, seed, version;
  std::vector<HeaderDifference> likely;
  std::vector<HeaderDifference> elsewhere;  // other parameters;
  std::vector<HeaderDifference> one_sided;  // and parameters that the version of one trace alone has.
};
Cause cause_of(const TraceDifference& difference, std::span<const std::string> hosts);
// The reason of the difference, as far as it can be told, in one line.
std::string verdict_of(const Cause& cause);
// "first in: ..." and "cause: ...", a line each.
std::string to_text(const Cause& cause);

}  // namespace rnicsim::sim
