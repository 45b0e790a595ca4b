// SPDX-License-Identifier: Apache-2.0
// Times and bounds of the time keeper.
#pragma once

#include <climits>
#include <optional>
#include <vector>

#include "model/base/units.h"

namespace rnicsim::sim {

// CPU delays of a host, in ps.
struct HostTimes {
  Duration detect{80'000};     // from a DMA write until a spinning or polling CPU sees the data
  Duration wakeup{3'000'000};  // from an event until a blocked thread runs again
};

struct TimeKeeperParams {
  bool simulated = true;
  HostTimes times;
  std::vector<HostTimes> of_hosts;  // by host number, if hosts differ; empty: `times` holds for all
  // Each look (an empty poll or a yield) takes a turn: slower, with the same results.
  bool each_look = false;
  // A thread that does nothing but read clocks may be ahead of simulated time by a part of the time since its last
  // other act, and by this at most.
  Duration most_clock_slack{1'000'000'000};
  Duration most_unseen{1'000'000'000};      // looks without a turn may end that far ahead of simulated time
  Duration least_unseen{1'000'000};         // ... at least, even if other processes of the host store meanwhile
  Duration act_slack{100'000'000};          // how far a thread that posts may be ahead
  int watched_end = INT_MAX;                // copies of watched descriptors have numbers below this
  std::optional<Duration> look_when_quiet;  // period of on_quiet while there is no progress
};

}  // namespace rnicsim::sim
