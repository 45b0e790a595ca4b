// Where receiving begins: behind a fixed latency it says which part of the device takes a frame, the RoCE transport or,
// of another protocol or UDP port, the flows of raw packets; flows that sniff get a copy of all. Frames keep their
// order.
#pragma once

#include "model/base/delay_line.h"
#include "model/base/frame.h"
#include "model/base/stream.h"
#include "model/nic/packets/flow_table.h"
#include "model/nic/packets/packet_streams.h"
#include "model/nic/packets/steering_counters.h"

namespace rnicsim::nic {

class Steering : public sc_core::sc_module {
 public:
  Steering(sc_core::sc_module_name name, Duration latency, const FlowTable& flows)
      : sc_module(name), latency_(latency), flows_(flows) {}

  Output<FrameIn> roce;
  Output<FrameIn> raw;
  Output<Frame> sniffed;                   // what goes to `roce`

  void receive(FrameIn&& frame, Duration delay);    // from the port: its last bit arrives in so long
  void receive_own(Frame&& frame, Duration delay);  // the same, of this device's own
  void reset();

  const SteeringCounters& counters() const { return counters_; }

 private:
  [[gnu::flatten]] void steer_due(DelayLine<FrameIn>& pipeline);

  const Duration latency_;
  const FlowTable& flows_;
  // Each keeps its order; their delays differ.
  DelayLine<FrameIn> pipeline_{[this] { steer_due(pipeline_); }};
  DelayLine<FrameIn> own_{[this] { steer_due(own_); }};
  SteeringCounters counters_;
};

}  // namespace rnicsim::nic
