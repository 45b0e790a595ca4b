// SPDX-License-Identifier: Apache-2.0
// Received raw frames: flow rules choose the destinations, and receive-side scaling one of their queues.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "model/base/delay_line.h"
#include "model/base/frame.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/packets/packet_streams.h"
#include "model/nic/packets/packet_tx.h"
#include "model/nic/packets/receive/flow_table.h"
#include "model/nic/packets/receive/raw_rx_params.h"
#include "model/nic/packets/receive/receive_scaling.h"

namespace rnicsim::nic {

class RawRx {
 public:
  RawRx(const RawRxParams& params, FlowTable& flows, const RssTable& scaling)
      : params_(params), flows_(flows), scaling_(scaling) {}

  Output<PacketIn> packet;
  trace::Point<PacketDropped> dropped;

  void receive(FrameIn&& came) { looked_up_.push(now() + params_.lookup, {std::move(came), false}); }
  // Another part of the device takes the frame; only sniffers get a copy.
  void sniff(Frame&& frame) { looked_up_.push(now() + params_.lookup, {{std::move(frame)}, true}); }
  void reset() { looked_up_.clear(); }

  const RawRxCounters& counters() const { return counters_; }

 private:
  struct Waiting {
    FrameIn came;
    bool sniffed = false;
  };
  void look_up_due();
  bool give(FrameIn& came, bool to_sniffers);
  void give_to(const FlowHit& hit, const FrameHeaders& headers, const Payload& bytes, FrameIn& came);

  const RawRxParams params_;
  FlowTable& flows_;
  const RssTable& scaling_;
  DelayLine<Waiting> looked_up_{[this] { look_up_due(); }};
  std::vector<FlowHit> hits_;
  std::vector<Qpn> given_;  // queues that got the frame
  RawRxCounters counters_;
};

}  // namespace rnicsim::nic
