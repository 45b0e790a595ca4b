// A thread of a workload.
#pragma once

#include <string>

namespace rnicsim::sim::bench {

class Agent {
 public:
  virtual ~Agent() = default;

  // Before anybody sends.
  virtual void fill() {}
  // The thread's body.
  virtual void run() = 0;
  // "h0 flow[0] thread 3: 4 of 4 operations wait for completions ..."; for the report of a run that stands still.
  virtual std::string describe() const = 0;
};

}  // namespace rnicsim::sim::bench
