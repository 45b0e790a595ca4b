// The way from the transmit pipeline to this NIC's own receive pipeline, past port and cable: for what this device
// sends to itself, and for a copy of what it sends to a group of which it has members. Frames go one after another, as
// at the port, and are seen by nobody on the wire.
#pragma once

#include "model/base/delay_line.h"
#include "model/base/frame.h"
#include "model/base/params.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/packets/loopback_params.h"
#include "model/nic/packets/port.h"

namespace rnicsim::nic {

// A copy's original goes to the port, which tells of it.
enum class Looped : bool { copy, alone };

class Loopback : public sc_core::sc_module {
 public:
  Loopback(sc_core::sc_module_name name, const LoopbackParams& params);

  Output<Frame, Duration> frame_out;       // to the receive pipeline; in how long its last bit arrives
  Output<std::uint64_t> left;              // Frame::id: it has left; not of copies
  trace::Point<FrameScheduled> scheduled;
  trace::Point<Frame> sent;                // its last bit left

  void send(Frame&& frame, Duration ready, Looped how);  // in so long it may begin to leave
  void reset();

  const LoopbackCounters& counters() const { return counters_; }

 private:
  struct Leaving {
    Frame frame;
    Looped how = Looped::alone;
  };
  void leave_due();

  const LoopbackParams params_;
  DelayLine<Leaving> leaving_{[this] { leave_due(); }};
  Duration free_;
  LoopbackCounters counters_;
};

}  // namespace rnicsim::nic
