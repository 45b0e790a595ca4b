// SPDX-License-Identifier: Apache-2.0
// The path from the transmit pipeline to this NIC's own receive pipeline, past port and cable: for frames that this
// device sends to itself, and for copies of frames to a multicast group with members here. Frames go one after another,
// as at the port, and are not visible on the wire.
#pragma once

#include "model/base/delay_line.h"
#include "model/base/frame.h"
#include "model/base/params.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/packets/loopback_params.h"
#include "model/nic/packets/port.h"

namespace rnicsim::nic {

// The original of a copy goes to the port, which reports it.
enum class Looped : bool { copy, alone };

class Loopback : public sc_core::sc_module {
 public:
  Loopback(sc_core::sc_module_name name, const LoopbackParams& params);

  Output<Frame, Duration> frame_out;  // to the receive pipeline; time until the last bit arrives
  Output<std::uint64_t> left;         // Frame::id of a frame that has left; not for copies
  trace::Point<FrameScheduled> scheduled;
  trace::Point<Frame> sent;  // the last bit of the frame has left

  void send(Frame&& frame, Duration ready, Looped how);  // may begin to leave after `ready`
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
