// The network port: frames leave at the link's rate, one after another, by priority; a frame is given to the cable when
// its last bit has left. What the other end of the cable asks to pause is paused (IEEE 802.1Qbb), if the port is told
// to obey. Its queues are as long as what the transmit pipeline has credits for: none is ever full.
#pragma once

#include <string>

#include "model/base/delay_line.h"
#include "model/base/frame.h"
#include "model/base/line_timing.h"
#include "model/base/params.h"
#include "model/base/priority_map.h"
#include "model/base/stats.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/base/transmit_port.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct PortParams {
  BitRate rate = 100_Gbps;
  ByteCount overhead{24};
  ByteCount least_frame{60};
  std::uint32_t pfc = 0;
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

struct FrameReceived {
  std::uint32_t bytes;
  Duration delay;                          // its last bit arrives in so long
};

// Told no later than that its last bit left.
struct FrameScheduled {
  std::uint64_t frame;                     // Frame::id
  Duration begins;                         // its first bit left, or will, absolute
};

class Port : public sc_core::sc_module {
 public:
  Port(sc_core::sc_module_name name, const PortParams& params);

  Output<Frame> frame_out;                 // to the cable
  Output<Frame, Duration> frame_in;        // to the receive pipeline; in how long its last bit arrives
  Output<std::uint64_t> left;              // Frame::id: it has left
  trace::Point<FrameScheduled> scheduled;
  trace::Point<Frame> sent;                // its last bit left
  trace::Point<FrameReceived> received;

  [[gnu::flatten]] void send(Frame&& frame, Duration ready);  // in so long it may begin to leave
  void receive(Frame&& frame, Duration delay);
  // To the other end of the cable, ahead of all that waits here.
  void send_control(Frame&& frame);
  void reset();

  PortCounters counters() const;

 private:
  [[gnu::flatten]] void leave_due();
  void control_due();

  const PortParams params_;
  const LineTiming timing_;
  const SteadyRate rate_;
  const PriorityMap priorities_;
  TransmitPort leaving_{[this] { leave_due(); }};
  DelayLine<Frame> controls_{[this] { control_due(); }};  // from the other end of the cable
  PortCounters counters_;
};

}  // namespace rnicsim::nic
