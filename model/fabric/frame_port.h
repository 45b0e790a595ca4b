// SPDX-License-Identifier: Apache-2.0
// A port at the end of a cable for frames of no simulated NIC: of the outside world, or of software with its own port.
// Frames are sent one after another at the cable's rate.
#pragma once

#include <cstddef>
#include <functional>

#include "model/base/delay_line.h"
#include "model/base/frame.h"
#include "model/base/ports/line_timing.h"
#include "model/base/ports/transmit_port.h"
#include "model/base/stream.h"

namespace rnicsim::fabric {

class FramePort {
 public:
  explicit FramePort(const LineTiming& timing) : timing_(timing) {}

  Output<Frame> out;  // to the cable, called when the last bit leaves
  // True: this port takes the frame; the enclosing module gives other frames to the NIC.
  std::function<bool(const Frame&)> takes = [](const Frame&) { return true; };
  std::function<void(const Frame&)> arrived;  // called when the last bit has arrived

  void send(Frame&& frame);
  std::size_t waiting() const { return leaving_.frames(); }
  void receive(Frame&& frame, Duration delay);  // `delay`: time until the last bit arrives
  // While the link is down, sent and received frames are lost.
  void set_link(bool up) { link_up_ = up; }

 private:
  void leave_due();
  void arrive_due();

  const LineTiming timing_;
  TransmitPort leaving_{[this] { leave_due(); }};
  DelayLine<Frame> coming_{[this] { arrive_due(); }};
  bool link_up_ = true;
};

}  // namespace rnicsim::fabric
