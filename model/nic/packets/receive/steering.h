// SPDX-License-Identifier: Apache-2.0
// The first stage of receiving: after a fixed latency it gives each frame to a part of the device: the RoCE transport,
// or, for another protocol or UDP port, the flows of raw packets. Sniffer flows get a copy of every frame. Frames keep
// their order.
#pragma once

#include "model/base/delay_line.h"
#include "model/base/frame.h"
#include "model/base/stream.h"
#include "model/nic/packets/packet_streams.h"
#include "model/nic/packets/receive/flow_table.h"
#include "model/nic/packets/receive/steering_counters.h"

namespace rnicsim::nic {

class Steering : public sc_core::sc_module {
 public:
  Steering(sc_core::sc_module_name name, Duration latency, const FlowTable& flows)
      : sc_module(name), latency_(latency), flows_(flows) {}

  Output<FrameIn> roce;
  Output<FrameIn> raw;
  Output<Frame> sniffed;  // copies of frames for `roce`

  void receive(FrameIn&& frame, Duration delay);    // from the port; `delay`: time until the last bit arrives
  void receive_own(Frame&& frame, Duration delay);  // the same, for frames of this device
  void reset();

  const SteeringCounters& counters() const { return counters_; }

 private:
  [[gnu::flatten]] void steer_due(DelayLine<FrameIn>& pipeline);

  const Duration latency_;
  const FlowTable& flows_;
  // Each line keeps its order; their delays differ.
  DelayLine<FrameIn> pipeline_{[this] { steer_due(pipeline_); }};
  DelayLine<FrameIn> own_{[this] { steer_due(own_); }};
  SteeringCounters counters_;
};

}  // namespace rnicsim::nic
