// A port at the end of a cable for frames of no simulated NIC: of the world outside the simulation, or of software that
// has a port of its own. Frames leave one after another at the cable's rate.
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

  Output<Frame> out;                             // to the cable, as the last bit leaves
  // Frames of the cable that this port takes. The enclosing module gives the others to the NIC.
  std::function<bool(const Frame&)> takes = [](const Frame&) { return true; };
  std::function<void(const Frame&)> arrived;     // its last bit is there

  void send(Frame&& frame);
  std::size_t waiting() const { return leaving_.frames(); }
  void receive(Frame&& frame, Duration delay);   // in so long its last bit arrives
  // While the link is down, what leaves or comes is lost.
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
