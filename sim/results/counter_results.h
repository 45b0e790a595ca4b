// What counters say of a time: how far each grew, and what follows from several.
#pragma once

#include <string>
#include <vector>

#include "model/base/units.h"
#include "sim/results/counter_list.h"

namespace rnicsim::sim {

struct CounterResult {
  enum class Kind {
    growth,    // of a counter; of a "most", the most there was so far
    hit_rate,  // of 1
    share,     // of 1: how busy one of its units was on average
    queue,     // how many waited, on average
    bit_rate,  // of what counts bytes
  };
  std::string path;
  std::string unit;
  double value;
  Kind kind = Kind::growth;
  bool known = true;  // false: a hit rate, and nobody looked

  bool derived() const { return kind != Kind::growth; }
  // Worth a line: something was counted.
  bool tells() const { return kind == Kind::hit_rate ? known : value != 0; }
};

// Each counter, and behind it what follows from it. `before` and `after` are of the same blocks.
std::vector<CounterResult> counter_results(const CounterList& before, const CounterList& after, Duration interval);

}  // namespace rnicsim::sim
