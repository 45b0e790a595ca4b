// Telemetry that a queue pair's next acknowledgements give back to the requester: the newest block of ports that a
// request brought, and the delay inside this NIC where a request asks for the delay.
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
  // A request with that block arrived.
  void came(const Telemetry& block, roce::Psn psn, Duration arrived);
  // The block for an answer. A block of ports goes back with any answer; a delay with an acknowledgement of a packet
  // that asked for the delay, `now` less the arrival of the newest such packet.
  std::optional<Telemetry> take(const roce::Headers& answer, Duration now);
  bool empty() const { return !ports_ && arrivals_.empty(); }

 private:
  struct Arrival {
    roce::Psn psn;
    Duration at;
  };
  // Packets that were lost behind a gap stay here until an acknowledgement covers them.
  static constexpr std::size_t kMostArrivals = 4096;

  std::optional<Telemetry> ports_;
  std::vector<Arrival> arrivals_;          // of packets that asked for the delay, in the order of time
};

}  // namespace rnicsim::nic
