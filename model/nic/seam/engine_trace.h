// SPDX-License-Identifier: Apache-2.0
// Trace points of a QP engine.
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

// A work request that the engine took from a ring; `opcode` is valid for sends.
struct WqeTaken {
  Qpn qpn;
  QueueKind queue;
  std::uint16_t index;
  SendOpcode opcode;
  std::uint64_t bytes;
  bool signaled;
  std::uint64_t message = 0;  // sends: number of the message of its QP, from 0
  roce::Psn first{};          // sends: first PSN of the message
  std::uint32_t packets = 0;
};

// A transmit unit has begun a packet of a request.
struct RequestBegan {
  Qpn qpn;
  std::uint64_t message;
  roce::Psn psn;
  roce::Psn end;              // one past the packet's PSNs
  std::optional<Tag> gather;  // tag of the payload's gather; nullopt: no payload, or inline
};

// The engine got a request from its receive unit.
struct RequestTaken {
  Qpn qpn;
  roce::Psn psn;
  std::uint64_t frame;
};

// A request packet's payload is in memory, or its atomic is done; also for duplicates and packets without payload.
struct RequestPlaced {
  Qpn qpn;
  roce::Psn psn;
  std::optional<std::uint16_t> receive;  // the receive WQE that its message completes
};

// The requester got an answer; the responder has answered all requests before `oldest`.
struct AnswerTaken {
  Qpn qpn;
  std::uint64_t frame;
  roce::Psn oldest;
};

// Payload of a response is in memory.
struct AnswerPlaced {
  Qpn qpn;
  std::uint64_t message;
};

// A send is complete; in order.
struct SendCompleted {
  Qpn qpn;
  std::uint64_t message;
  bool cqe;  // a CQE will be written
  bool ok;
};

// A doorbell reached its queue pair and was ignored.
struct DoorbellIgnored {
  Qpn qpn;
  Refusal::Why why;
};

// A CNP reached the congestion control of a queue pair.
struct CnpTaken {
  Qpn qpn;
};

// State or window of a queue pair's congestion control differs from the last event. The engine checks after each sent
// packet and after each input of the control. A change by the control's own timers is reported with the next of these.
struct ControlChanged {
  Qpn qpn;
  roce::ControlState state;
  std::uint64_t window;  // bytes; roce::Allowance::kNoWindow: no window
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
