// Virtual machines on a simulated system: simulated time and the requests of the virtual machines take turns.
#pragma once

#include <poll.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "model/base/agenda.h"
#include "sim/guest/pace.h"
#include "sim/guest/served_guest.h"
#include "sim/snapshot_server.h"

namespace rnicsim::sim {

class GuestLoop {
 public:
  // Construct before the simulation starts.
  explicit GuestLoop(System& system);

  // Before start(). `host` is a guest of the system and has one NIC.
  ServedGuest& add(std::uint32_t host);
  const std::vector<std::unique_ptr<ServedGuest>>& guests() const { return guests_; }
  void start();

  // Advances simulated time, at most to `limit`; waits until a guest has a request, one of `others` is ready, an event
  // is due, or `longest` has passed; executes the guests' requests. Leaves `others` as poll(2) does.
  void turn(std::vector<pollfd>& others, std::chrono::nanoseconds longest, Duration limit = Agenda::kNever);

  // Nothing can happen any more: the simulation was stopped, or the RTL's referee objected.
  bool has_stopped() const;
  std::string state() const;

 private:
  void wait(std::vector<pollfd>& others, std::chrono::nanoseconds longest, Duration limit);

  System& system_;
  SnapshotServer snapshots_;
  Pace pace_;
  std::vector<std::unique_ptr<ServedGuest>> guests_;
  std::vector<pollfd> watched_;
};

}  // namespace rnicsim::sim
