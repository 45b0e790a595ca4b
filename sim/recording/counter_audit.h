// The counters' audit: recounts, from what the trace points tell, what the blocks count themselves.
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
  // Subscribes to every host; to be made before the simulation starts, and to stay as long as the system.
  explicit CounterAudit(System& system);

  // A line for each counter that differs: host, counter, both values. Empty: all agree.
  // Each process compares its own hosts, and the first has the lines of all.
  std::vector<std::string> disagreements() const;

 private:
  using Counters = std::map<std::string, Counter>;  // by path; nodes stay where they are

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
