// Parameters and counters of the port.
#pragma once

#include <cstdint>
#include <string>

#include "model/base/line_timing.h"
#include "model/base/params.h"
#include "model/base/policy_choice.h"
#include "model/base/priority_map.h"
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
  std::string dscp_priority;

  PriorityMap priorities() const { return PriorityMap::parse(dscp_priority).value_or(PriorityMap()); }
  LineTiming timing() const { return {rate, overhead, least_frame}; }
  void describe(ParamVisitor& visit) {
    visit.param("rate", rate, "the link's rate; docs/timing.md", {1e6, 1e13});
    visit.param("overhead", overhead, "bytes a frame takes on the wire beyond itself: preamble 8, gap 12, FCS 4",
                {0, 256});
    visit.param("least_frame", least_frame, "shorter frames take as long as this one (Ethernet's 64 less FCS)",
                {0, 1500});
    visit.param("pfc", pfc, "priorities whose pauses (IEEE 802.1Qbb) the port obeys, a bit each; 0: none", {0, 255});
    scheduler.describe(visit, "scheduler", "which priority's queue of the port sends next");
    describe_priorities(visit, dscp_priority);
  }
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

  void describe(CounterVisitor& visit) const {
    visit.counter("tx_frames", tx_frames, "frames", "frames sent");
    visit.counter("tx_bytes", tx_bytes, "bytes", "bytes of them, without FCS");
    visit.busy("tx_busy", tx_busy_ps, 1, "time that the port was busy with them, preamble, gap and FCS too");
    visit.waited("tx_wait", tx_wait_ps, "time that frames waited for others and pauses, of all together");
    visit.counter("rx_frames", rx_frames, "frames", "frames received");
    visit.counter("rx_bytes", rx_bytes, "bytes", "bytes of them, without FCS");
    visit.counter("rx_pause", rx_pause, "frames", "those of them that asked for a pause, or ended one (IEEE 802.1Qbb)");
    visit.counter("tx_paused", tx_paused_ps, "ps", "time that priorities were paused, of all together");
    visit.most("tx_most_bytes", tx_most_bytes, "bytes", "the most that ever were on their way out, pipeline and port");
  }
};

}  // namespace rnicsim::nic
