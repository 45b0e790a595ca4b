// The simulator's own descriptors: what programs open there (processes, contexts, channels, sockets) is refused while
// some are left for what passes through, so that nothing is lost for want of one. So are waits, of which the simulator
// keeps copies.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <string>

namespace rnicsim::sim {

class DescriptorBudget {
 public:
  DescriptorBudget();                            // raises this process's limit
  explicit DescriptorBudget(std::size_t limit);  // as if that were the limit

  // So many more are about to be opened for good. False: there is no room for them.
  bool take_for_process(std::size_t count) { return take(count, kForPassing); }
  // Objects leave room for processes, too: one that cannot start is worse off than one that has enough already.
  bool take_for_object(std::size_t count) { return take(count, kForPassing + kForProcesses); }

  // The copies of descriptors that programs wait for come and go; they are numbered below this.
  int end_for_waits() const { return int(std::min<std::size_t>(limit_ - std::min(limit_, kForPassing), INT_MAX)); }
  // Something was not to be had, which at another limit would have been.
  bool refused() const { return refused_; }

  // "1000 of 1024 are open; ..." and what to do about it.
  std::string shortage() const;
  // As it was before; programs see it.
  rlimit given() const { return given_; }

  static constexpr std::size_t kForPassing = 96;  // a call's, a launch's, a visitor's
  static constexpr std::size_t kForProcesses = 96;

 private:
  bool take(std::size_t count, std::size_t spare);

  const rlimit given_;
  const std::size_t limit_;
  // Counted now and then: others come and go without asking.
  std::size_t known_open_;
  std::size_t taken_since_ = 0;
  bool refused_ = false;
};

}  // namespace rnicsim::sim
