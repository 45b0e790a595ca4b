#include "model/roce/completer.h"

#include <algorithm>

namespace rnicsim::roce {

using Kind = ResponseOutcome::Kind;

ResponseOutcome Completer::receive(const Headers& headers, std::uint32_t payload) {
  const auto psn = headers.bth.psn;
  // Answers to what was never sent, or is answered already, are ghosts of a retransmission.
  if (!before(psn, window_.sent_psn())) return {Kind::dropped};
  const bool old = before(psn, window_.oldest_psn());
  const auto& row = info(headers.bth.opcode);
  if (row.operation == Operation::read_response)
    return old ? ResponseOutcome{Kind::duplicate} : read_response(headers, row, payload);
  if (row.operation != Operation::acknowledge) return fail(Status::bad_response_error);
  return old ? ResponseOutcome{Kind::duplicate} : acknowledge(headers);
}

ResponseOutcome Completer::acknowledge(const Headers& headers) {
  const auto psn = headers.bth.psn;
  const auto syndrome = headers.aeth->syndrome;
  const auto kind = syndrome & Aeth::kClassMask;
  // An ACK answers for its own PSN, a NAK only for those before it.
  const bool moved = window_.acknowledge_before(kind == Aeth::kAck ? psn + 1 : psn);
  if (moved) window_.replenish();
  if (kind == Aeth::kNak) return negative(psn, syndrome);
  if (kind == Aeth::kRnrNak) return rnr(syndrome & Aeth::kValueMask);
  if (kind != Aeth::kAck) return fail(Status::bad_response_error);
  // An ACK beyond an unanswered READ: its response was lost.
  if (before(window_.oldest_psn(), psn + 1)) return response_lost();
  return {moved ? Kind::progress : Kind::duplicate};
}

ResponseOutcome Completer::negative(Psn psn, std::uint8_t syndrome) {
  if (window_.oldest_psn() != psn) return go_back();
  switch (syndrome) {
    case Aeth::kSequenceError: return go_back();
    case Aeth::kInvalidRequest: return fail(Status::remote_invalid_request_error);
    case Aeth::kRemoteAccessError: return fail(Status::remote_access_error);
    case Aeth::kRemoteOperationError: return fail(Status::remote_operation_error);
    default: return fail(Status::bad_response_error);
  }
}

ResponseOutcome Completer::rnr(std::uint8_t timer) {
  if (window_.rnr_retries_left == 0) return fail(Status::rnr_retry_exceeded);
  if (window_.attributes.rnr_retry != SendWindow::kRetryForever) --window_.rnr_retries_left;
  window_.rewind();
  window_.rnr_waiting = true;
  return {.kind = Kind::rnr, .rewound = true, .placement = {}, .rnr_timer = timer};
}

ResponseOutcome Completer::read_response(const Headers& headers, const OpcodeInfo& row, std::uint32_t payload) {
  const auto psn = headers.bth.psn;
  auto* message = window_.oldest_unanswered();
  // A response answers for what precedes its READ.
  if (message != nullptr && !message->is_read() && window_.acknowledge_before(psn)) {
    window_.replenish();
    message = window_.oldest_unanswered();
  }
  if (message == nullptr) return {Kind::dropped};
  if (!message->is_read()) return fail(Status::bad_response_error);
  const auto expected = message->first + message->acknowledged;
  if (psn != expected) return before(expected, psn) ? response_lost() : ResponseOutcome{Kind::duplicate};
  const auto offset = message->acknowledged * window_.attributes.mtu;
  const auto left = message->request.length - offset;
  const bool last = message->acknowledged + 1 == message->packets;
  if (row.ends() != last || payload != std::min(left, window_.attributes.mtu)) return fail(Status::bad_response_error);
  ++message->acknowledged;
  window_.replenish();
  if (last) --window_.reads_in_flight;
  if (payload == 0) return {Kind::progress};
  ++message->placing;
  return {.kind = Kind::progress, .rewound = false, .placement = Placement{message->request.id, offset}};
}

ResponseOutcome Completer::response_lost() {
  if (window_.gap_known) return {Kind::dropped};
  auto outcome = go_back();
  window_.gap_known = true;
  return outcome;
}

ResponseOutcome Completer::go_back() {
  if (window_.retries_left == 0) return fail(Status::transport_retry_exceeded);
  --window_.retries_left;
  window_.rewind();
  return {.kind = Kind::sequence_error, .rewound = true};
}

ResponseOutcome Completer::fail(Status status) {
  window_.fail_oldest(status);
  return {Kind::failed};
}

void Completer::placed(std::uint64_t id, Status status) {
  auto* message = window_.find(id);
  if (message == nullptr || message->placing == 0) return;
  --message->placing;
  if (status != Status::success && !message->error) message->error = status;
}

std::optional<Completion> Completer::take_completion() {
  if (window_.messages.empty()) return std::nullopt;
  const auto& head = window_.messages.front();
  if (head.placing != 0) return std::nullopt;
  if (head.error) return retire(*head.error);
  // A message of no packets is done when its turn comes; others when they were sent and answered.
  if (!head.answered()) return std::nullopt;
  return retire(Status::success);
}

std::optional<Completion> Completer::take_flushed() {
  if (window_.messages.empty()) return std::nullopt;
  return retire(window_.messages.front().error.value_or(Status::flushed_error));
}

Completion Completer::retire(Status status) {
  Completion completion{window_.messages.front().request, status};
  window_.messages.pop_front();
  if (window_.cursor > 0) --window_.cursor;
  return completion;
}

}  // namespace rnicsim::roce
