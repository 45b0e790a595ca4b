// SPDX-License-Identifier: Apache-2.0
// Parameters of loss recovery for the queue pairs of a device, and the number of out-of-order packets that they accept.
#pragma once

#include <cstdint>

namespace rnicsim::roce {

enum class Recovery : std::uint8_t {
  go_back_n,  // resends everything from the first missing packet on
  go_back_0,  // resends everything from the first packet of the interrupted message on
  selective   // resends missing packets only (IRN, SIGCOMM 2018)
};

struct LossRecovery {
  Recovery mode = Recovery::go_back_n;
  // Arriving packets are kept up to this distance from the first missing one, in packets. 0: no packet is kept.
  std::uint32_t reorder_window = 0;
  // Distance from the first missing packet, in packets, up to which an arriving packet is no sign of a loss.
  std::uint32_t nak_gap = 0;
  std::uint32_t most_in_flight = 0;  // packets sent and not acknowledged; 0: no limit
  std::uint32_t few_in_flight = 0;   // at most this many packets in flight are few (CoreActions::arm)
  bool place_early = true;           // payload with a known target goes to memory before the packet's turn
  bool reth_in_each = false;         // each packet of a WRITE is a WRITE of its own, with its address

  // Distance of acknowledgement requests within a message, in packets; the last packet always requests one. Small
  // enough that the limit of packets in flight is not reached without a request.
  std::uint32_t asks_every() const {
    constexpr std::uint32_t kOfAMessage = 256, kOfTheLimit = 4, kSelective = 16;
    const auto most = mode == Recovery::selective ? kSelective : kOfAMessage;
    if (most_in_flight == 0 || most_in_flight / kOfTheLimit > most) return most;
    return most_in_flight < kOfTheLimit ? 1 : most_in_flight / kOfTheLimit;
  }
  bool operator==(const LossRecovery&) const = default;
  bool keeps(std::int32_t ahead) const { return ahead > 0 && static_cast<std::uint32_t>(ahead) <= reorder_window; }
  bool tells_of_loss(std::int32_t ahead) const { return ahead > 0 && static_cast<std::uint32_t>(ahead) > nak_gap; }
};

}  // namespace rnicsim::roce
