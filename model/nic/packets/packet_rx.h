// The RoCE transport's frames: validates one, then gives its packet to the engine. What is not for us or not right is
// dropped and counted by cause. What is for a group becomes a packet for each QP attached to it. A frame that still is
// its sender's packet is taken as that; any other is parsed, and its ICRC checked.
#pragma once

#include <optional>
#include <vector>

#include "model/base/frame.h"
#include "model/base/stats.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/packets/gid_table.h"
#include "model/nic/packets/multicast_table.h"
#include "model/nic/packets/packet_rx_params.h"
#include "model/nic/packets/packet_streams.h"
#include "model/nic/packets/packet_tx.h"
#include "model/roce/packet.h"

namespace rnicsim::nic {

class PacketRx : public sc_core::sc_module {
 public:
  // Headers only: so is the ICRC of frames that are cut as PacketTx cuts them.
  PacketRx(sc_core::sc_module_name name, const PacketRxParams& params, const GidTable& gids,
           const MulticastTable& groups, IcrcRule icrc = {});

  Output<PacketIn> packet;
  trace::Point<PacketTrace> received;
  trace::Point<PacketDropped> dropped;

  [[gnu::flatten]] void receive(FrameIn&& came);

  const PacketRxCounters& counters() const { return counters_; }

 private:
  // Where a packet goes on this device.
  struct Way {
    std::uint16_t gid_index = 0;
    const std::vector<Qpn>* members = nullptr;  // of its group
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
