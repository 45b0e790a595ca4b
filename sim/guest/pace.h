// How fast simulated time goes beside that of a guest. What is due soon (the path of a message) happens at once: time
// runs free while the device has work. What is far, a retransmission timer and its like, waits for the wall clock, as
// the guest's program does that is to post a receive meanwhile. With nothing to come simulated time stands, and catches
// up with the wall clock when somebody asks again.
#pragma once

#include <chrono>
#include <optional>

#include "model/base/units.h"

namespace rnicsim::sim {

class Pace {
 public:
  using Clock = std::chrono::steady_clock;

  // Lets happen what is due, up to `limit` in simulated time, and no more than some pieces of it. How long nothing else
  // is due, of the wall clock; 0: there is more to do; nullopt: nothing is to come.
  std::optional<std::chrono::nanoseconds> advance(Duration limit);
  // Simulated time is the guest's present. Before it asks something of the device.
  void catch_up(Duration limit);

 private:
  void anchor();
  Duration present() const;

  Duration simulated_;   // was it when the wall clock said
  Clock::time_point wall_ = Clock::now();
};

}  // namespace rnicsim::sim
