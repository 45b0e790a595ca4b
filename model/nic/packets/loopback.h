// The way from the transmit pipeline to this NIC's own receive pipeline, past port and cable: for what this device
// sends to itself, and for a copy of what it sends to a group of which it has members. Frames go one after another, as
// at the port, and are seen by nobody on the wire.
#pragma once

#include "model/base/delay_line.h"
#include "model/base/frame.h"
#include "model/base/params.h"
#include "model/base/stats.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/packets/port.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct LoopbackParams {
  BitRate rate = 128_Gbps;
  Duration latency = 50_ns;

  void describe(ParamVisitor& visit) {
    visit.param("rate", rate, "of the way from transmit to receive inside the device; E: that of the host's PCIe",
                {1e6, 1e13});
    visit.param("latency", latency, "of that way; E: a switch's decision without PHY and cable", {0, 1e9});
  }
};

struct LoopbackCounters {
  Counter frames = 0;
  Counter bytes = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("frames", frames, "frames", "frames that this device sent to itself");
    visit.counter("bytes", bytes, "bytes", "bytes of them, without FCS");
  }
};

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
