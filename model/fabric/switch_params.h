// Parameters and counters of a switch.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/base/params.h"
#include "model/base/priority_map.h"
#include "model/base/stats.h"

namespace rnicsim::fabric {

using namespace rnicsim::literals;

struct PfcParams {
  std::uint32_t priorities = 0;
  ByteCount xoff = 64_KiB;
  ByteCount xon = 48_KiB;
  ByteCount headroom = 64_KiB;
  std::uint32_t quanta = 65535;

  void describe(ParamVisitor& visit) {
    visit.param("priorities", priorities,
                "which are without loss, a bit each: the switch has their senders pause, and pauses them; 0: none",
                {0, 255});
    visit.param("xoff", xoff, "bytes held of a port's priority from which on its sender is to pause", {1, 1e12});
    visit.param("xon", xon, "bytes held of it down to which its sender may go on", {0, 1e12});
    visit.param("headroom", headroom,
                "bytes beyond xoff, for what is sent until the pause acts; what exceeds them is lost", {0, 1e12});
    visit.param("quanta", quanta, "how long a pause is asked for, in times of 512 bits", {2, 65535});
    visit.refuse(xon >= xoff, "xon", "is not less than", "xoff");
  }
};

struct SwitchParams {
  Duration latency = 300_ns;
  ByteCount port_buffer = 64_MiB;
  PfcParams pfc;
  std::string dscp_priority;

  void describe(ParamVisitor& visit) {
    visit.param("latency", latency, "first bit in to first bit out of an idle port; docs/timing.md", {0, 1e12});
    visit.param("port_buffer", port_buffer,
                "bytes that may wait and leave at a port, of priorities that are not lossless; the next frame is lost",
                {1, 1e12});
    visit.group("pfc", pfc);
    describe_priorities(visit, dscp_priority);
  }
};

// Counters of one port, by priority: they tell which port of a switch is used up, and which device pauses which.
struct SwitchPortCounters {
  std::array<Counter, kPriorities> busy_ps{};     // the line was busy with frames of it
  std::array<Counter, kPriorities> wait_ps{};     // frames waited for other frames or for the end of a pause
  std::array<Counter, kPriorities> paused_ps{};   // the other end of the cable had it paused
  std::array<Counter, kPriorities> stopped_ps{};  // the other end was asked to pause it
  Counter control_ps = 0;                         // the line was busy with control frames
  Counter tx_discards = 0;
  Counter rx_discards = 0;
};

struct SwitchCounters {
  Counter frames = 0;
  Counter bytes = 0;
  Counter unknown = 0;
  Counter most_waiting = 0;
  Counter most_bytes = 0;
  Counter tx_busy_ps = 0;
  Counter tx_wait_ps = 0;
  Counter tx_discards = 0;
  Counter rx_discards = 0;
  Counter tx_pause = 0;
  Counter rx_pause = 0;
  Counter tx_paused_ps = 0;
  std::vector<Counter> port_busy_ps;

  void describe(CounterVisitor& visit) const {
    visit.counter("frames", frames, "frames", "frames to be forwarded");
    visit.counter("bytes", bytes, "bytes", "bytes of them, without FCS");
    visit.counter("unknown", unknown, "frames", "dropped: no port leads to their destination");
    visit.most("most_waiting", most_waiting, "frames", "the most that ever were on their way to one port at a time");
    visit.most("most_bytes", most_bytes, "bytes", "the most bytes that ever were on their way to one port at a time");
    visit.busy("tx_busy", tx_busy_ps, static_cast<std::uint32_t>(port_busy_ps.size()),
               "time that ports were busy with what leaves, of all together", port_busy_ps);
    visit.waited("tx_wait", tx_wait_ps, "time that frames waited for others and pauses, of all together");
    visit.counter("tx_discards", tx_discards, "frames", "dropped: the buffer of the port where they leave was full");
    visit.counter("rx_discards", rx_discards, "frames",
                  "dropped, of priorities without loss: what is held of the port where they came had no headroom left");
    visit.counter("tx_pause", tx_pause, "frames", "sent to pause a sender, or to end that (IEEE 802.1Qbb)");
    visit.counter("rx_pause", rx_pause, "frames", "such frames received");
    visit.counter("tx_paused", tx_paused_ps, "ps", "time that ports' priorities were paused, of all together");
  }
};

}  // namespace rnicsim::fabric
