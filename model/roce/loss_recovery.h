// How the queue pairs of a device recover from lost packets, and how many packets they take that come before others.
#pragma once

#include <cstdint>

namespace rnicsim::roce {

enum class Recovery : std::uint8_t {
  go_back_n,                             // everything from the first missing packet on is sent again
  go_back_0,                             // everything from the first packet of the interrupted message on
  selective                              // what is missing alone (IRN, SIGCOMM 2018)
};

struct LossRecovery {
  Recovery mode = Recovery::go_back_n;
  // Packets, counted from the first missing one, among which those that come are kept. 0: none is kept.
  std::uint32_t reorder_window = 0;
  // Distance from the first missing packet, in packets, up to which a packet that comes is no sign of a loss.
  std::uint32_t nak_gap = 0;
  std::uint32_t most_in_flight = 0;      // packets that are sent and not acknowledged; 0: no limit
  std::uint32_t few_in_flight = 0;       // so many packets in flight, or fewer, are few (CoreActions::arm)
  bool place_early = true;               // payload goes to memory before the packet's turn, if its place is known
  bool reth_in_each = false;             // packets of a WRITE are WRITEs of their own, each with its address

  // A requester asks for an acknowledgement in the last packet of a message and in every packet of that number: often
  // enough that the limit of packets in flight is not reached without a question.
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
