// What any QP engine counts, and tells of its work.
#pragma once

#include <cstdint>
#include <optional>

#include "model/base/stats.h"
#include "model/base/trace.h"
#include "model/nic/personality/values.h"
#include "model/nic/seam/refusal.h"
#include "model/roce/types.h"

namespace rnicsim::nic {

using roce::Cqn;
using roce::Qpn;
using Tag = std::uint64_t;

enum class QueueKind : std::uint8_t { send, receive, shared_receive };

struct EngineCounters {
  Counter out_of_sequence = 0;
  Counter duplicate_request = 0;
  Counter packet_seq_err = 0;
  Counter implied_nak_seq_err = 0;
  Counter rnr_nak_retry_err = 0;
  Counter out_of_buffer = 0;
  Counter bad_qkey = 0;
  Counter silently_dropped = 0;
  Counter absent_rnr = 0;
  Counter absent_dropped = 0;
  Counter local_ack_timeout_err = 0;
  Counter roce_adp_retrans = 0;
  Counter rx_write_requests = 0;
  Counter rx_read_requests = 0;
  Counter rx_atomic_requests = 0;
  Counter req_cqe_error = 0;
  Counter req_cqe_flush_error = 0;
  Counter req_transport_retries_exceeded = 0;
  Counter req_rnr_retries_exceeded = 0;
  Counter resp_cqe_error = 0;
  Counter resp_cqe_flush_error = 0;
  Counter resp_local_length_error = 0;
  Counter req_remote_access_errors = 0;
  Counter req_remote_invalid_request = 0;
  Counter resp_remote_access_errors = 0;
  Counter resp_invalid_request = 0;
  Counter unknown_qp = 0;
  Counter wrong_state = 0;
  Counter wrong_path = 0;
  Counter doorbell_invalid = 0;
  Counter doorbell_wrong_state = 0;

  void describe(CounterVisitor& visit) const;
};

struct QpStateChanged {
  Qpn qpn;
  roce::QpState from;
  roce::QpState to;
};

// A work request that the engine took from a ring; the opcode is that of sends.
struct WqeTaken {
  Qpn qpn;
  QueueKind queue;
  std::uint16_t index;
  SendOpcode opcode;
  std::uint64_t bytes;
  bool signaled;
  std::uint64_t message = 0;               // sends: counts the QP's, from 0
  roce::Psn first{};                       // sends: of the PSNs that it takes
  std::uint32_t packets = 0;
};

// A transmit unit has begun with a packet of a request.
struct RequestBegan {
  Qpn qpn;
  std::uint64_t message;
  roce::Psn psn;
  roce::Psn end;                           // one past the PSNs that it stands for
  std::optional<Tag> gather;               // of its payload; none: it has none, or has it already
};

// The responder took a request from its receive unit.
struct RequestTaken {
  Qpn qpn;
  roce::Psn psn;
  std::uint64_t frame;
};

// What a request packet brought is in memory, or its atomic is done; it was known already; or there was nothing.
struct RequestPlaced {
  Qpn qpn;
  roce::Psn psn;
  std::optional<std::uint16_t> receive;    // the receive WQE that its message fills
};

// The requester took an answer; the responder has answered for all before `oldest`.
struct AnswerTaken {
  Qpn qpn;
  std::uint64_t frame;
  roce::Psn oldest;
};

// Payload of an answer is in memory.
struct AnswerPlaced {
  Qpn qpn;
  std::uint64_t message;
};

// A send is done with, in order.
struct SendCompleted {
  Qpn qpn;
  std::uint64_t message;
  bool cqe;                                // there will be an entry for it
  bool ok;
};

// A doorbell that reached its queue pair, and announces nothing.
struct DoorbellIgnored {
  Qpn qpn;
  Refusal::Why why;
};

struct EngineTrace {
  trace::Point<QpStateChanged> state_changed;
  trace::Point<WqeTaken> wqe_taken;
  trace::Point<RequestBegan> request_began;
  trace::Point<RequestTaken> request_taken;
  trace::Point<RequestPlaced> request_placed;
  trace::Point<AnswerTaken> answer_taken;
  trace::Point<AnswerPlaced> answer_placed;
  trace::Point<SendCompleted> send_completed;
  trace::Point<DoorbellIgnored> doorbell_ignored;
};

}  // namespace rnicsim::nic
