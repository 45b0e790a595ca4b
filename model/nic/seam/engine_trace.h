// What any QP engine counts, and tells of its work.
#pragma once

#include <cstdint>
#include <optional>

#include "model/base/trace.h"
#include "model/nic/personality/values.h"
#include "model/nic/seam/engine_counters.h"
#include "model/nic/seam/refusal.h"
#include "model/roce/congestion.h"
#include "model/roce/types.h"

namespace rnicsim::nic {

using roce::Cqn;
using roce::Qpn;
using Tag = std::uint64_t;

enum class QueueKind : std::uint8_t { send, receive, shared_receive };

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

// A CNP that the congestion control of a queue pair heard.
struct CnpTaken {
  Qpn qpn;
};

// What the congestion control of a queue pair has in mind and allows is not what the last event said. The engine looks
// when a packet was sent and behind each input of the control. So a change by the control's own timers is told with the
// next of these.
struct ControlChanged {
  Qpn qpn;
  roce::ControlState state;
  std::uint64_t window;                    // bytes; roce::Allowance::kNoWindow: none
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
  trace::Point<CnpTaken> cnp_taken;
  trace::Point<ControlChanged> control_changed;
};

}  // namespace rnicsim::nic
