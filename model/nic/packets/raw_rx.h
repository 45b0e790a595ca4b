// Raw frames in: flow rules say who gets one, receive-side scaling to which of its queues.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "model/base/delay_line.h"
#include "model/base/frame.h"
#include "model/base/params.h"
#include "model/base/stats.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/packets/flow_table.h"
#include "model/nic/packets/packet_streams.h"
#include "model/nic/packets/packet_tx.h"
#include "model/nic/packets/receive_scaling.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct RawRxParams {
  Duration lookup = 40_ns;

  void describe(ParamVisitor& visit) {
    visit.param("lookup", lookup, "of a frame in the flow table, which takes them one behind another without a gap; E",
                {0, 1e9});
  }
};

struct RawRxCounters {
  Counter frames = 0;
  Counter copies = 0;
  Counter no_flow = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("frames", frames, "frames", "that a flow takes");
    visit.counter("copies", copies, "frames", "given to queue pairs: one of these for each that gets a frame");
    visit.counter("no_flow", no_flow, "frames", "dropped: no flow takes them");
  }
};

class RawRx {
 public:
  RawRx(const RawRxParams& params, FlowTable& flows, const RssTable& scaling)
      : params_(params), flows_(flows), scaling_(scaling) {}

  Output<PacketIn> packet;
  trace::Point<PacketDropped> dropped;

  void receive(FrameIn&& came) { looked_up_.push(now() + params_.lookup, {std::move(came), false}); }
  // Another part of the device takes it.
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
  std::vector<Qpn> given_;                 // who has got the frame
  RawRxCounters counters_;
};

}  // namespace rnicsim::nic
