// An Ethernet switch without blocking: a frame leaves by a port that leads to its destination, after a latency and
// after the frames that wait there already, by priority. Of several ports it takes one by the frame's flow
// (flow_hash.h). It knows MAC addresses and ways from the topology, and drops what is for no one. What is for a group
// leaves by every port of the topology's tree but that by which it came: nobody tells it who listens.
//
// Frames come in the order in which their last bits arrive; at one time in that of their ports. So what a switch does
// depends on nothing but on what its cables bring, and when.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/base/delay_line.h"
#include "model/base/frame.h"
#include "model/base/line_timing.h"
#include "model/base/params.h"
#include "model/base/pause_frame.h"
#include "model/base/priority_map.h"
#include "model/base/stats.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/base/transmit_port.h"
#include "model/fabric/ingress_buffer.h"
#include "model/fabric/stations.h"

namespace rnicsim::fabric {

using namespace rnicsim::literals;

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

// A switch's place in the topology.
struct SwitchWiring {
  std::uint32_t number = 0;  // among the switches, as in Stations::Place
  std::vector<LineTiming> lines;  // by port
  std::shared_ptr<const Stations> stations;
  // The ports of the shortest ways to another switch: ways[way_to[its number]]; none: there is no way.
  std::vector<std::uint16_t> way_to;
  std::vector<std::vector<std::uint16_t>> ways;
  std::vector<std::uint16_t> flooded;  // the ports by which frames for groups leave: without a loop
  std::uint64_t seed = 1;              // with `number`: decides the choice among equal paths (ECMP)
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

class Switch : public sc_core::sc_module {
 public:
  Switch(sc_core::sc_module_name name, const SwitchParams& params, SwitchWiring wiring);

  Output<Frame>& out(std::size_t port) { return ports_[port]->out; }
  trace::Point<Frame> pause_sent;  // a control frame's last bit left

  // From the cable of that port: its last bit arrives in so long.
  void receive(std::size_t port, Frame&& frame, Duration delay);

  SwitchCounters counters() const;
  SwitchPortCounters port_counters(std::size_t port) const;
  std::size_t ports() const { return ports_.size(); }

 private:
  struct Port {
    Port(Switch& owner, std::uint32_t number, const LineTiming& timing)
        : home(owner), number(number), timing(timing) {}
    Switch& home;
    const std::uint32_t number;
    const LineTiming timing;
    DelayLine<Frame> arriving{[this] { home.arrive_due(*this); }};
    TransmitPort queues{[this] { home.leave_due(*this); }, home.params_.port_buffer,
                        static_cast<std::uint8_t>(home.params_.pfc.priorities)};
    Output<Frame> out;
    SwitchPortCounters counted;
    // By priority: the last pause that was asked for, of which `counted` has what was before.
    std::array<Duration, kPriorities> paused_since{}, paused_until{};
    Counter paused_so_far(std::size_t priority) const {
      const auto end = std::min(now(), paused_until[priority]);
      return end > paused_since[priority] ? static_cast<Counter>((end - paused_since[priority]).ps) : 0;
    }
  };

  void arrive_due(Port& port);
  void arrive(std::uint32_t from, Frame&& frame);
  void arrive_for_group(std::uint32_t from, const Frame& frame);
  std::optional<std::uint32_t> way_of(const Frame& frame) const;
  void forward(std::uint32_t from, std::uint32_t to, Frame&& frame);
  void send(std::uint32_t from, std::uint32_t to, std::uint8_t priority, Frame&& frame);
  void leave_due(Port& port);
  void send_pause(std::uint32_t port, const PriorityPause& pause);
  void take_control(std::uint32_t from, const Frame& frame);

  const SwitchParams params_;
  const SwitchWiring wiring_;
  const PriorityMap priorities_;
  bool alike_ = true;  // all lines, in their timing
  std::vector<std::unique_ptr<Port>> ports_;
  IngressBuffer ingress_;
  SwitchCounters counters_;
};

}  // namespace rnicsim::fabric
