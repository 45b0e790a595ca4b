// SPDX-License-Identifier: Apache-2.0
// Results of counters over an interval: the growth of each counter, and values derived from several counters.
#pragma once

#include <string>
#include <vector>

#include "model/base/units.h"
#include "sim/results/counter_list.h"

namespace rnicsim::sim {

struct CounterResult {
  enum class Kind {
    growth,    // of a counter; of a `most` counter, the largest value so far
    hit_rate,  // fraction of 1
    share,     // fraction of 1: average use of a unit
    queue,     // average number of waiting entries
    bit_rate,  // of a counter of bytes
  };
  std::string path;
  std::string unit;
  double value;
  Kind kind = Kind::growth;
  bool known = true;  // false: a hit rate without any lookup

  bool derived() const { return kind != Kind::growth; }
  // False: the value is not worth a line of output, because nothing was counted.
  bool tells() const { return kind == Kind::hit_rate ? known : value != 0; }
};

// Each counter, followed by the values derived from it. `before` and `after` must list counters of the same blocks.
std::vector<CounterResult> counter_results(const CounterList& before, const CounterList& after, Duration interval);

}  // namespace rnicsim::sim
