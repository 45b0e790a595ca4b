// SPDX-License-Identifier: Apache-2.0
// File descriptors of the simulator's process. Objects of programs (processes, contexts, channels, sockets) and copies
// of descriptors that threads wait for are refused before the limit is reached: the rest is kept for descriptors that
// are open for a short time only (a call, a launch), so that no such operation fails.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <string>

namespace rnicsim::sim {

class DescriptorBudget {
 public:
  DescriptorBudget();                            // raises the process's limit to its hard limit
  explicit DescriptorBudget(std::size_t limit);  // for tests: counts against `limit`

  // Reserves `count` descriptors for a process, until it ends. False: too few are left.
  bool take_for_process(std::size_t count) { return take(count, kForPassing); }
  // The same for an object. More descriptors stay free than for a process: a program that cannot start loses more than
  // a program that cannot make one more object.
  bool take_for_object(std::size_t count) { return take(count, kForPassing + kForProcesses); }

  // Copies of descriptors that threads wait for come and go and are not counted; each has a number below this.
  int end_for_waits() const { return int(std::min<std::size_t>(limit_ - std::min(limit_, kForPassing), INT_MAX)); }
  // True after a request was refused for want of descriptors.
  bool refused() const { return refused_; }

  // For people: "... 1000 of 1024 are open; ..." and the remedy.
  std::string shortage() const;
  // The limit before it was raised; programs get this one.
  rlimit given() const { return given_; }

  static constexpr std::size_t kForPassing = 96;  // for a call, a launch, or a connection at the attach socket
  static constexpr std::size_t kForProcesses = 96;

 private:
  bool take(std::size_t count, std::size_t spare);

  const rlimit given_;
  const std::size_t limit_;
  // Open descriptors at the last count. Other code opens and closes descriptors, so they are counted again now and
  // then.
  std::size_t known_open_;
  std::size_t taken_since_ = 0;
  bool refused_ = false;
};

}  // namespace rnicsim::sim
