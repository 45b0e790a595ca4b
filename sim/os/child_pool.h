// Jobs in processes of their own: SystemC knows one simulation a process.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace rnicsim::sim {

struct ChildResult {
  std::size_t job;
  std::string text;     // what the work returned
  std::string failure;  // what it threw, or how its process died; empty: it returned
};

struct ChildWork {
  std::function<std::string(std::size_t job)> work;                // in the child; what it throws is its failure
  std::function<void(const ChildResult&)> done;                    // here, in the order in which they end
  std::function<void(const std::vector<std::size_t>&)> look = {};  // here, a few times a second: those under way
};

// Each of the jobs, up to `at_a_time` of them at a time, begun in their order. They die with this process.
// std::system_error: no process could be made, and those under way are ended.
void run_in_children(const std::vector<std::size_t>& jobs, unsigned at_a_time, const ChildWork& work);

}  // namespace rnicsim::sim
