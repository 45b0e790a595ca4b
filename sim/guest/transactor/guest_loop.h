// SPDX-License-Identifier: Apache-2.0
// Virtual machines on a simulation: simulated time and the requests of the virtual machines take turns.
#pragma once

#include <poll.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "model/base/agenda.h"
#include "sim/guest/transactor/pace.h"
#include "sim/guest/transactor/served_guest.h"

namespace rnicsim::sim {

class GuestLoop {
 public:
  // Before the simulation starts.
  ServedGuest& add(const GuestFunction& function);
  const std::vector<std::unique_ptr<ServedGuest>>& guests() const { return guests_; }

  // Advances simulated time, at most to `limit`; waits until a guest has a request, one of `others` is ready, an event
  // is due, or `longest` has passed; executes the guests' requests. Sets `revents` of `others` as poll(2) does.
  void turn(std::vector<pollfd>& others, std::chrono::nanoseconds longest, Duration limit = Agenda::kNever);

 private:
  void wait(std::vector<pollfd>& others, std::chrono::nanoseconds longest, Duration limit);

  Pace pace_;
  std::vector<std::unique_ptr<ServedGuest>> guests_;
  std::vector<pollfd> watched_;
};

}  // namespace rnicsim::sim
