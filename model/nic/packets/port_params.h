// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of the port.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/base/params.h"
#include "model/base/policy_choice.h"
#include "model/base/ports/line_timing.h"
#include "model/base/ports/priority_map.h"
#include "model/base/stats.h"

namespace rnicsim {
class QueueDiscipline;
}  // namespace rnicsim

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct PortParams {
  BitRate rate = 100_Gbps;
  ByteCount overhead{24};
  ByteCount least_frame{60};
  std::uint32_t pfc = 0;
  PolicyChoice<QueueDiscipline> scheduler{"strict"};
  PriorityParams priority;

  PriorityMap priorities() const { return priority.map(); }
  LineTiming timing() const { return {rate, overhead, least_frame}; }
  void describe(ParamVisitor& visit) {
    visit.param("rate", rate, "the link's rate; docs/timing.md", {1e6, 1e13});
    visit.param("overhead", overhead, "bytes on the wire for each frame besides its own: preamble 8, gap 12, FCS 4",
                {0, 256});
    visit.param("least_frame", least_frame, "shorter frames take as long as this one (Ethernet's 64 less FCS)",
                {0, 1500});
    visit.param("pfc", pfc, "priorities whose pauses (IEEE 802.1Qbb) the port obeys, a bit each; 0: none", {0, 255});
    scheduler.describe(visit, "scheduler", "policy that selects the queue of the port that sends next");
    priority.describe(visit);
  }
};

// Counters of one priority, with the names of `ethtool -S` for mlx5, which include the priority.
struct PriorityPauseCounters {
  Counter rx_pause = 0;           // frames
  Counter tx_pause = 0;           // frames
  Counter rx_pause_duration = 0;  // us
};

struct PortCounters {
  Counter tx_frames = 0;
  Counter tx_bytes = 0;
  Counter tx_busy_ps = 0;
  Counter tx_wait_ps = 0;
  Counter rx_frames = 0;
  Counter rx_bytes = 0;
  Counter rx_pause = 0;
  Counter tx_paused_ps = 0;
  Counter tx_most_bytes = 0;
  Counter link_down_events_phy = 0;
  Counter link_down_discards = 0;
  std::array<PriorityPauseCounters, kPriorities> pauses{};

  void describe(CounterVisitor& visit) const;
};

}  // namespace rnicsim::nic
