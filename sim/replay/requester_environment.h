// What a capture implies of the NIC at one address as a requester: what was posted, with which attributes, and what
// made it send again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/replay/posted.h"

namespace rnicsim::sim::replay {

// Why a requester went back, as far as the answers before tell.
enum class Cause : std::uint8_t {
  none,     // it did not
  skip,     // what was to be sent again need not be: its answer came late
  nak,      // sequence error, or an answer behind one that is missing
  rnr,      // the RNR timer has ended
  timeout,  // nothing else: the local ACK timeout
};
inline constexpr std::size_t kCauses = 5;

// One packet that the requester sent, or an answer that it got.
struct WireEvent {
  const WirePacket* packet = nullptr;
  bool sent = false;
  // --- of what was sent
  bool posts = false;  // the first of the next message
  Cause cause = Cause::none;
  Duration since{};  // with rnr, timeout: from when the timer counts
  Duration least{};  // and how long it must be
  // Only an RNR NAK has acknowledged it: a requester that takes that from an RNR NAK does not send it again.
  bool acknowledged = false;
  // --- of an answer
  bool in_order = true;  // false: it makes a requester go back, or end; the real NIC may have seen it later
  std::optional<std::uint8_t> rnr_timer;
};

struct RequesterEnvironment {
  roce::Transport transport = roce::Transport::rc;
  roce::Qpn qpn;  // ours, as answers and datagrams tell it; else 0
  roce::Qpn peer_qpn;
  roce::Gid peer{};
  roce::MacAddress peer_mac{};
  std::uint8_t path_mtu = 1;
  std::uint8_t timeout = 0;  // code of the local ACK timeout; 0: the capture knows of none
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;
  std::vector<const WirePacket*> sent;
  std::vector<const WirePacket*> answers;
  // --- from here on what imply_requests() finds
  std::vector<Posted> posted;
  std::vector<WireEvent> events;
  std::optional<std::uint32_t> hole;  // a frame before which packets of its own are missing: nothing is judged behind
  bool unfinished = false;            // the capture ends while something is still to be sent
  bool gives_up = false;              // the last thing it does is to let its timer end

  std::size_t count(Cause cause) const;
};

// Of each (peer, QP) that the address sent requests to: RC and UC. Of UD: of each QP that it sent from.
std::vector<RequesterEnvironment> requester_streams(std::span<const WirePacket* const> own_requests);
// `qp` has `sent`, `answers` and `path_mtu`.
void imply_requests(RequesterEnvironment& qp);

}  // namespace rnicsim::sim::replay
