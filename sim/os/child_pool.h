// SPDX-License-Identifier: Apache-2.0
// Runs jobs in child processes: SystemC allows one simulation in a process.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace rnicsim::sim {

struct ChildResult {
  std::size_t job;
  std::string text;     // text that ChildWork::work returned
  std::string failure;  // text of the exception that `work` threw, or how the child died; empty: `work` returned
};

struct ChildWork {
  std::function<std::string(std::size_t job)> work;                // in the child; an exception becomes `failure`
  std::function<void(const ChildResult&)> done;                    // in this process, in the order of the ends
  std::function<void(const std::vector<std::size_t>&)> look = {};  // in this process, now and then: running jobs
};

// Runs all jobs, at most `at_a_time` of them at the same time, started in the given order. The children die with this
// process. std::system_error: a child could not be started; the running children are killed.
void run_in_children(const std::vector<std::size_t>& jobs, unsigned at_a_time, const ChildWork& work);

}  // namespace rnicsim::sim
