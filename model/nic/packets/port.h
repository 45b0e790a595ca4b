// The network port: frames leave at the link's rate, one after another, by priority; a frame is given to the cable when
// its last bit has left. What the other end of the cable asks to pause is paused (IEEE 802.1Qbb), if the port is told
// to obey. Its queues are as long as what the transmit pipeline has credits for: none is ever full.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/base/delay_line.h"
#include "model/base/frame.h"
#include "model/base/line_timing.h"
#include "model/base/params.h"
#include "model/base/pause_frame.h"
#include "model/base/priority_map.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/base/transmit_port.h"
#include "model/nic/packets/port_params.h"

namespace rnicsim::nic {

struct FrameReceived {
  std::uint32_t bytes;
  Duration delay;                          // its last bit arrives in so long
};

// Told no later than that its last bit left.
struct FrameScheduled {
  std::uint64_t frame;                     // Frame::id
  Duration begins;                         // its first bit left, or will, absolute
};

// The port sends nothing of a priority until `until`. The present time ends the pause.
struct PriorityPaused {
  std::uint8_t priority;
  Duration until;
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
  trace::Point<PriorityPaused> paused;     // of pauses that the port obeys

  [[gnu::flatten]] void send(Frame&& frame, Duration ready);  // in so long it may begin to leave
  void receive(Frame&& frame, Duration delay);
  // To the other end of the cable, ahead of all that waits here.
  void send_control(Frame&& frame);
  void reset();
  // While the link is down, what would leave or comes is lost. False: nothing has changed.
  bool set_link(bool up);
  bool link_up() const { return link_up_; }

  PortCounters counters() const;

 private:
  [[gnu::flatten]] void leave_due();
  void control_due();
  std::optional<PriorityPause> count_pause(const Frame& frame, Counter PriorityPauseCounters::*counter);
  void obey(std::uint8_t priority, Duration until);

  const PortParams params_;
  const LineTiming timing_;
  const SteadyRate rate_;
  const PriorityMap priorities_;
  TransmitPort leaving_;
  DelayLine<Frame> controls_{[this] { control_due(); }};  // from the other end of the cable
  bool link_up_ = true;
  PortCounters counters_;
};

}  // namespace rnicsim::nic
