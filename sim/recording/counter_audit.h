// SPDX-License-Identifier: Apache-2.0
// The counters' audit: counts the events of the trace points, and compares the sums with the blocks' own counters.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "model/base/stats.h"
#include "sim/system.h"

namespace rnicsim::nic {
struct NicBlocks;
}

namespace rnicsim::fabric {
class FaultInjector;
}

namespace rnicsim::sim {

class CounterAudit {
 public:
  // Subscribes to every host. Make the object before the simulation starts; it must live as long as the system.
  explicit CounterAudit(System& system);

  // One line for each counter that differs: host, counter, both values. Empty: all agree. Each process compares its own
  // hosts; the first process gets the lines of all.
  std::vector<std::string> disagreements() const;

 private:
  using Counters = std::map<std::string, Counter>;  // by path; std::map: addresses of the values are stable

  std::vector<std::string> own_disagreements() const;
  static void recount_network(Counters& counters, const nic::NicBlocks& nic);
  static void recount_cable(Counters& counters, fabric::FaultInjector& cable);
  static void recount_queues(Counters& counters, const nic::NicBlocks& nic);
  static void recount_doorbells(Counters& counters, const nic::NicBlocks& nic);
  static void recount_host(Counters& counters, Adapter& host);

  const System& system_;
  std::deque<Counters> hosts_;
};

}  // namespace rnicsim::sim
