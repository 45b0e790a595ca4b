// SPDX-License-Identifier: Apache-2.0
// Frames of the RoCE transport: validates a frame and gives its packet to the engine. Invalid frames, and frames for
// others, are dropped and counted by cause. A packet to a multicast group is delivered to each attached QP. A frame
// that is still its sender's packet is taken as that packet; any other frame is parsed, and its ICRC checked.
#pragma once

#include <optional>
#include <vector>

#include "model/base/frame.h"
#include "model/base/stats.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/packets/gid_table.h"
#include "model/nic/packets/multicast_table.h"
#include "model/nic/packets/packet_streams.h"
#include "model/nic/packets/packet_tx.h"
#include "model/nic/packets/receive/packet_rx_params.h"
#include "model/roce/packet.h"

namespace rnicsim::nic {

class PacketRx : public sc_core::sc_module {
 public:
  // `icrc.headers_only`: the ICRC covers no payload, in frames that are cut as PacketTx cuts them.
  PacketRx(sc_core::sc_module_name name, const PacketRxParams& params, const GidTable& gids,
           const MulticastTable& groups, IcrcRule icrc = {});

  Output<PacketIn> packet;
  trace::Point<PacketTrace> received;
  trace::Point<PacketDropped> dropped;

  [[gnu::flatten]] void receive(FrameIn&& came);

  const PacketRxCounters& counters() const { return counters_; }

 private:
  // Destination of a packet on this device.
  struct Way {
    std::uint16_t gid_index = 0;
    const std::vector<Qpn>* members = nullptr;  // QPs of the group; nullptr: not a group
  };

  void take(const Packet& packet, std::uint32_t frame_bytes, BufferHold&& hold);
  [[gnu::noinline]] void parse(const Frame& frame, BufferHold&& hold);
  std::optional<Way> accept(const roce::ParsedFrame& parsed);
  std::optional<Way> way_of(const roce::Headers& headers, const roce::FrameAddresses& addresses) const;
  [[gnu::noinline]] std::optional<Way> way_of_group(const roce::Headers& headers,
                                                    const roce::FrameAddresses& addresses) const;
  void deliver(PacketIn&& came, std::uint32_t frame_bytes, const std::vector<Qpn>* members);
  [[gnu::noinline]] void drop(Counter& counter, DropCause cause);

  const PacketRxParams params_;
  const GidTable& gids_;
  const MulticastTable& groups_;
  const IcrcRule icrc_;
  PacketRxCounters counters_;
};

}  // namespace rnicsim::nic
