// SPDX-License-Identifier: Apache-2.0
// Rates between two snapshots of a run, over simulated time.
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
    double value;  // fraction of 1
  };
  // A counter that is 0 in normal operation.
  struct Trouble {
    std::string counter;
    double grown;  // growth since the last snapshot
    Counter total;
  };
  std::string label;
  double transmitted = 0, received = 0;           // b/s, on the wire
  double packets_sent = 0, packets_received = 0;  // a second
  double doorbells = 0, completions = 0;          // a second
  std::optional<double> qpc, cqc, mpt, mtt;       // hit rates, fractions of 1; nullopt: no lookup
  double retries = 0;                             // NAKs and timeouts that caused retransmissions
  std::vector<Share> shares;                      // the busiest resource first
  std::vector<Trouble> troubles;
  std::vector<CounterResult> results;  // all results
};

struct SwitchView {
  std::string label;
  double bits = 0, frames = 0;  // a second
  Counter most_waiting = 0, unknown = 0;
};

struct View {
  Snapshot snapshot;
  Duration interval;            // simulated time of the rates
  std::optional<double> speed;  // simulated seconds in a second of wall time; nullopt: only one snapshot
  std::vector<AdapterView> adapters;
  std::vector<SwitchView> switches;
};

// `before`: nullptr for a view since the run's start.
View make_view(const Snapshot* before, Snapshot after);

Json view_json(const View& view);

}  // namespace rnicsim::sim::top
