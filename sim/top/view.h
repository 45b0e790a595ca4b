// What two snapshots of a run tell of the simulated time between them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/results/counter_results.h"
#include "sim/results/json.h"
#include "sim/snapshot.h"

namespace rnicsim::sim::top {

struct AdapterView {
  struct Share {
    std::string resource;
    double value;  // of 1
  };
  // A counter that stays at 0 where all goes well.
  struct Trouble {
    std::string counter;
    double grown;  // since the last snapshot
    Counter total;
  };
  std::string label;
  double transmitted = 0, received = 0;           // b/s, on the wire
  double packets_sent = 0, packets_received = 0;  // a second
  double doorbells = 0, completions = 0;          // a second
  std::optional<double> qpc, cqc, mpt, mtt;       // hit rates, of 1; nullopt: nobody looked
  double retries = 0;                             // why packets were sent again: NAKs and timeouts
  std::vector<Share> shares;                      // the busiest first
  std::vector<Trouble> troubles;
  std::vector<CounterResult> results;  // everything
};

struct SwitchView {
  std::string label;
  double bits = 0, frames = 0;  // a second
  Counter most_waiting = 0, unknown = 0;
};

struct View {
  Snapshot snapshot;
  Duration interval;            // simulated; the rates are over it
  std::optional<double> speed;  // simulated seconds a second; nullopt: there is one snapshot only
  std::vector<AdapterView> adapters;
  std::vector<SwitchView> switches;
};

// `before`: nullptr for a view since the run's start.
View make_view(const Snapshot* before, Snapshot after);

Json view_json(const View& view);

}  // namespace rnicsim::sim::top
