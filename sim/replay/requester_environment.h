// SPDX-License-Identifier: Apache-2.0
// Facts about the NIC at one address as a requester that a capture implies: posted work requests, attributes, and the
// reasons of retransmissions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/replay/posted.h"

namespace rnicsim::sim::replay {

// Reason of a retransmission, as far as the preceding answers show it.
enum class Cause : std::uint8_t {
  none,     // no retransmission
  skip,     // packets are left out of a retransmission, because their answer arrived late
  nak,      // a sequence error NAK, or an answer after a missing one
  rnr,      // the RNR timer has ended
  timeout,  // no other reason: the local ACK timeout
};
inline constexpr std::size_t kCauses = 5;

// A packet that the requester sent, or an answer that it received.
struct WireEvent {
  const WirePacket* packet = nullptr;
  bool sent = false;
  // --- Members for a sent packet.
  bool posts = false;  // first packet of the next message
  Cause cause = Cause::none;
  Duration since{};  // for rnr and timeout: start of the timer
  Duration least{};  // for rnr and timeout: shortest legal duration of the timer
  // True: only an RNR NAK has acknowledged the packet. A requester that counts this as an acknowledgement does not
  // retransmit.
  bool acknowledged = false;
  // --- Members for an answer.
  bool in_order = true;  // false: causes a retransmission or the end; the real NIC may have seen it later
  std::optional<std::uint8_t> rnr_timer;
};

struct RequesterEnvironment {
  roce::Transport transport = roce::Transport::rc;
  roce::Qpn qpn;  // own QP number, as answers and datagrams show it; 0: unknown
  roce::Qpn peer_qpn;
  roce::Gid peer{};
  roce::MacAddress peer_mac{};
  std::uint8_t path_mtu = 1;
  std::uint8_t timeout = 0;  // code of the local ACK timeout; 0: no timeout in the capture
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;
  std::vector<const WirePacket*> sent;
  std::vector<const WirePacket*> answers;
  // --- Members that imply_requests() fills.
  std::vector<Posted> posted;
  std::vector<WireEvent> events;
  std::optional<std::uint32_t> hole;  // own packets before this frame are missing; nothing after it is compared
  bool unfinished = false;            // the capture ends before everything was sent
  bool gives_up = false;              // the last event is the expiry of the requester's timer

  std::size_t count(Cause cause) const;
};

// RC and UC: one stream for each (peer, QP) that received requests of the address. UD: one for each sending QP.
std::vector<RequesterEnvironment> requester_streams(std::span<const WirePacket* const> own_requests);
// `qp` must have `sent`, `answers` and `path_mtu`.
void imply_requests(RequesterEnvironment& qp);

}  // namespace rnicsim::sim::replay
