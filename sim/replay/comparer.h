// Compares what an engine sent, and what reached its programs, with the real NIC's, queue pair by queue pair. Packets
// are paired by PSN and kind; what one side alone has is found once, and what follows it is paired again. What may
// differ is in difference.h; everything else is a difference.
#pragma once

#include <cstdint>
#include <span>

#include "sim/replay/capture/packet_pair.h"
#include "sim/replay/delivery.h"
#include "sim/replay/difference.h"

namespace rnicsim::sim::replay {

// What the comparison of answers needs to know of the requests.
struct Asked {
  std::uint32_t frame = 0;
  roce::Psn last;  // its last PSN
  bool ack_request = false;
  bool duplicate = false;
  bool executed = false;
  std::uint32_t msn = 0;  // of the responder then
  bool resumed = false;   // a READ that begins inside of one that was executed
};

// Each of the three in the order of the wire.
Comparison compare(std::span<const Asked> asked, std::span<const Answer> ours, std::span<const Answer> theirs);
// Requests; `ours` has the frame in whose place each was sent.
Comparison compare_requests(std::span<const SentPacket> ours, std::span<const SentPacket> theirs);
// Both in the order of their frames.
Comparison compare_deliveries(std::span<const Delivery> ours, std::span<const Delivery> theirs);

}  // namespace rnicsim::sim::replay
