// SPDX-License-Identifier: Apache-2.0
// A thread of a workload.
#pragma once

#include <string>

namespace rnicsim::sim::bench {

class Agent {
 public:
  virtual ~Agent() = default;

  // Called before any agent sends.
  virtual void fill() {}
  // Body of the thread.
  virtual void run() = 0;
  // Example: "h0 flow[0] thread 3: 4 of 4 operations wait for completions ..."; for the report of a run without
  // progress.
  virtual std::string describe() const = 0;
};

}  // namespace rnicsim::sim::bench
