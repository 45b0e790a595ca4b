// SPDX-License-Identifier: Apache-2.0
// The network port: frames leave at the link's rate, one after another, by priority; the cable gets a frame when its
// last bit has left. Pauses that the other end of the cable requests are obeyed (IEEE 802.1Qbb) if the parameter pfc
// says so. The credits of the transmit pipeline limit the queues: none is ever full.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/base/delay_line.h"
#include "model/base/frame.h"
#include "model/base/params.h"
#include "model/base/ports/line_timing.h"
#include "model/base/ports/pause_frame.h"
#include "model/base/ports/priority_map.h"
#include "model/base/ports/transmit_port.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/packets/port_params.h"

namespace rnicsim::nic {

struct FrameReceived {
  std::uint32_t bytes;
  Duration delay;  // time until the last bit arrives
};

// Reported at the latest when the last bit leaves.
struct FrameScheduled {
  std::uint64_t frame;  // Frame::id
  Duration begins;      // absolute time of the first bit, past or future
};

// The port sends no frame of a priority until `until`; the present time ends the pause.
struct PriorityPaused {
  std::uint8_t priority;
  Duration until;
};

class Port : public sc_core::sc_module {
 public:
  Port(sc_core::sc_module_name name, const PortParams& params);

  Output<Frame> frame_out;           // to the cable
  Output<Frame, Duration> frame_in;  // to the receive pipeline; time until the last bit arrives
  Output<std::uint64_t> left;        // Frame::id of a frame that has left
  trace::Point<FrameScheduled> scheduled;
  trace::Point<Frame> sent;  // the last bit of the frame has left
  trace::Point<FrameReceived> received;
  trace::Point<PriorityPaused> paused;  // pauses that the port obeys

  [[gnu::flatten]] void send(Frame&& frame, Duration ready);  // may begin to leave after `ready`
  void receive(Frame&& frame, Duration delay);
  // Sends to the other end of the cable, ahead of all waiting frames.
  void send_control(Frame&& frame);
  void reset();
  // While the link is down, frames in both directions are lost. False: no change.
  bool set_link(bool up);
  bool link_up() const { return link_up_; }

  PortCounters counters() const;
  // Priorities with a frame so far, a bit each.
  std::uint32_t used_priorities() const { return leaving_.used_priorities(); }

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
  DelayLine<Frame> controls_{[this] { control_due(); }};  // control frames from the other end of the cable
  bool link_up_ = true;
  PortCounters counters_;
};

}  // namespace rnicsim::nic
