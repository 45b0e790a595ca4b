// SPDX-License-Identifier: Apache-2.0
// The pace of simulated time beside a guest. While the device has work, simulated time runs as fast as the simulator
// can: an event that is due soon (the path of a message) is executed at once. An event that is due later (a
// retransmission timer, an RNR timer) waits for the wall clock, because the guest's program needs wall time to react.
// Without any event simulated time stands; it catches up with the wall clock at the guest's next request.
#pragma once

#include <chrono>
#include <optional>

#include "model/base/units.h"

namespace rnicsim::sim {

class Pace {
 public:
  using Clock = std::chrono::steady_clock;

  // Executes due events, up to `limit` in simulated time, for a limited time. Returns the wall time until the next
  // event; 0: events are due; nullopt: there is no event.
  std::optional<std::chrono::nanoseconds> advance(Duration limit);
  // Advances simulated time to the present of the wall clock. Call before a request of the guest.
  void catch_up(Duration limit);

 private:
  void anchor();
  Duration present() const;

  Duration simulated_;  // simulated time at wall_
  Clock::time_point wall_ = Clock::now();
};

}  // namespace rnicsim::sim
