// SPDX-License-Identifier: Apache-2.0
// State of a connection on one side, as the communication manager keeps it (IBTA vol 1, 12.9.5 to 12.9.8).
#pragma once

#include <cstdint>
#include <optional>

#include "model/base/units.h"
#include "model/cm/messages.h"

namespace rnicsim::cm {

// Local communication ID, or the request ID of a service ID resolution.
using ConnectionId = std::uint32_t;

enum class State : std::uint8_t {
  idle,
  request_sent,
  request_received,
  request_acknowledged,  // a peer that retransmits gets an MRA
  reply_sent,
  reply_received,
  established,
  disconnect_sent,
  disconnect_received,
  timewait,
  service_request_sent,
  service_request_received,
};

// Path of management messages to the peer, and of the peer's packets to this side.
struct Route {
  Gid local{};
  Gid remote{};
  std::uint32_t flow_label = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t service_level = 0;
  bool operator==(const Route&) const = default;
};

// Identity of the connection's peer. Two connections must not have the same peer at the same time.
struct Peer {
  std::uint64_t ca_guid = 0;
  std::uint32_t id = 0;
  std::uint32_t qpn = 0;
};

// A message that is retransmitted until an answer arrives.
struct Pending {
  Envelope envelope;
  Duration interval;
  unsigned retries = 0;  // retries left
};

struct Connection {
  ConnectionId id = 0;
  State state = State::idle;
  Route route;
  Peer peer;
  bool peer_known = false;  // in the manager's table, which shows stale connections to the same peer
  std::uint64_t service_id = 0;
  std::uint64_t transaction_id = 0;

  // Attributes for the QP on this side.
  TransportService transport = TransportService::rc;
  std::uint32_t local_qpn = 0;
  std::uint32_t send_psn = 0;
  std::uint32_t receive_psn = 0;
  std::uint16_t pkey = 0xffff;
  std::uint8_t path_mtu = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  TimeCode ack_timeout = 0;

  Duration response_timeout;  // for messages sent by this side
  unsigned max_retries = 0;
  std::optional<Envelope> last_answer;  // sent again if the peer retransmits its request
  std::optional<Pending> pending;
  std::optional<Duration> deadline;  // of `pending`, or the end of timewait
  bool orphan = false;               // the owner destroyed the connection; it is erased after timewait
};

}  // namespace rnicsim::cm
