// SPDX-License-Identifier: Apache-2.0
// The transmit pipeline: adds addresses to a packet, which makes it a frame at the port after a fixed latency.
// The pipeline needs no event: only it feeds port and loopback, in order, so both can be reserved ahead.
#pragma once

#include <array>

#include "model/base/fifo.h"
#include "model/base/frame.h"
#include "model/base/params.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/packets/gid_table.h"
#include "model/nic/packets/loopback.h"
#include "model/nic/packets/multicast_table.h"
#include "model/nic/packets/packet_streams.h"
#include "model/nic/packets/packet_tx_params.h"
#include "model/nic/packets/receive/flow_table.h"
#include "model/roce/packet.h"

namespace rnicsim::nic {

struct PacketTrace {
  Qpn qpn;  // QP of this side
  const roce::Headers& headers;
  const Payload& payload;
  const roce::FrameAddresses& addresses;
  std::uint64_t frame = 0;  // Frame::id
  Duration arrived{};       // received packets: time of the last bit
};

enum class DropCause : std::uint8_t { no_source_gid, wrong_icrc, malformed, not_roce, not_ours, bad_pkey };
struct PacketDropped {
  DropCause cause;
};

class PacketTx {
 public:
  PacketTx(const PacketTxParams& params, const GidTable& gids, const MulticastTable& groups, const FlowTable& flows,
           IcrcRule icrc = {})
      : params_(params), gids_(gids), groups_(groups), flows_(flows), icrc_(icrc) {}

  Output<Frame, Duration> frame;           // to the cable; time until it may leave
  Output<Frame, Duration, Looped> looped;  // the same, to this device
  // Packets of a credit class that left, in the order in which they came.
  Output<std::uint8_t, std::uint32_t> credit;
  trace::Point<PacketTrace> sent;  // at the entry of the pipeline
  trace::Point<PacketDropped> dropped;

  [[gnu::flatten]] void send(PacketOut&& packet);
  // A frame that a program wrote: it leaves unchanged by the port, or returns to this device.
  [[gnu::noinline]] void send_raw(PacketOut&& packet);
  // A frame has left by the cable or the loopback. The credits return in the order of the packets of their class.
  [[gnu::flatten]] void left(std::uint64_t frame);
  void reset() {
    leaving_ = {};
    filled_ = 0;
  }

  const PacketTxCounters& counters() const { return counters_; }

 private:
  const PacketTxParams params_;
  const GidTable& gids_;
  const MulticastTable& groups_;
  const FlowTable& flows_;
  const IcrcRule icrc_;
  std::uint32_t filled_ = 0;  // credit classes with frames in leaving_, a bit each
  struct Leaving {
    std::uint64_t frame = 0;
    bool left = false;
    bool credited = true;
  };
  using Queue = Fifo<Leaving>;

  Leaving* find(Queue& queue, std::uint64_t frame);

  std::uint64_t frames_ = 0;
  // By credit class: from the oldest frame that has not left to the newest.
  std::array<Queue, kCreditClasses> leaving_;
  PacketTxCounters counters_;
};

}  // namespace rnicsim::nic
