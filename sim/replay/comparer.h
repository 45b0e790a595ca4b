// SPDX-License-Identifier: Apache-2.0
// Compares the packets of an engine, and the messages delivered to its programs, with the real NIC's, for each queue
// pair. Packets are paired by PSN and kind. A packet that only one side has is reported once, and later packets are
// paired again. Allowed deviations are in difference.h.
#pragma once

#include <cstdint>
#include <span>

#include "sim/replay/capture/packet_pair.h"
#include "sim/replay/delivery.h"
#include "sim/replay/difference.h"

namespace rnicsim::sim::replay {

// Facts about a request that the comparison of answers needs.
struct Asked {
  std::uint32_t frame = 0;
  roce::Psn last;  // the request's last PSN
  bool ack_request = false;
  bool duplicate = false;
  bool executed = false;
  std::uint32_t msn = 0;  // MSN of the responder after the request
  bool resumed = false;   // a READ that begins inside a READ executed before
};

// Each list in the order of the wire.
Comparison compare(std::span<const Asked> asked, std::span<const Answer> ours, std::span<const Answer> theirs);
// Compares requests; `ours` has the frame of the real NIC's packet in whose place each request was sent.
Comparison compare_requests(std::span<const SentPacket> ours, std::span<const SentPacket> theirs);
// Both lists in the order of frames.
Comparison compare_deliveries(std::span<const Delivery> ours, std::span<const Delivery> theirs);

}  // namespace rnicsim::sim::replay
