// SPDX-License-Identifier: Apache-2.0
// Telemetry that a queue pair's next acknowledgements return to the requester: the newest block of ports that a request
// carried, and the delay inside this NIC if a request asks for the delay.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "model/base/telemetry.h"
#include "model/base/units.h"
#include "model/roce/headers.h"

namespace rnicsim::nic {

class TelemetryReturns {
 public:
  // A request with this block arrived.
  void came(const Telemetry& block, roce::Psn psn, Duration arrived);
  // The block for an answer; nullopt: none. A block of ports returns with any answer. A delay returns with an
  // acknowledgement of a packet that asked for it: `now` minus the arrival of the newest such packet.
  std::optional<Telemetry> take(const roce::Headers& answer, Duration now);
  bool empty() const { return !ports_ && arrivals_.empty(); }

 private:
  struct Arrival {
    roce::Psn psn;
    Duration at;
  };
  // Limit: arrivals of packets that were lost after a gap stay here until an acknowledgement covers them.
  static constexpr std::size_t kMostArrivals = 4096;

  std::optional<Telemetry> ports_;
  std::vector<Arrival> arrivals_;  // arrivals of packets that asked for the delay, by time
};

}  // namespace rnicsim::nic
