// SPDX-License-Identifier: Apache-2.0
#include "model/roce/completer.h"

#include <algorithm>

namespace rnicsim::roce {
namespace {

Status status_of(std::uint8_t nak) {
  switch (nak) {
    case Aeth::kInvalidRequest: return Status::remote_invalid_request_error;
    case Aeth::kRemoteAccessError: return Status::remote_access_error;
    case Aeth::kRemoteOperationError: return Status::remote_operation_error;
    default: return Status::bad_response_error;
  }
}

}  // namespace

ResponseOutcome Completer::validate(const Headers& headers, std::uint32_t payload) {
  const auto psn = headers.bth.psn;
  // Answers to packets that were never sent, or that are answered already, are ignored.
  if (!before(psn, window_.unsent_psn)) return {Kind::dropped};
  if (before(psn, window_.oldest_psn())) return {Kind::duplicate};
  const auto& row = info(headers.bth.opcode);
  if (!row.response() || !row.payload_fits(payload, window_.attributes.mtu)) return fail(Status::bad_response_error);
  return row.operation == Operation::acknowledge ? acknowledge(headers) : data_response(headers, row, payload);
}

ResponseOutcome Completer::acknowledge(const Headers& headers) {
  const auto psn = headers.bth.psn;
  const auto syndrome = headers.aeth->syndrome;
  const auto kind = syndrome & Aeth::kClassMask;
  // An ACK acknowledges its own PSN; a NAK only the PSNs before its own.
  const bool moved = window_.acknowledge_before(kind == Aeth::kAck ? psn + 1 : psn);
  if (moved) window_.replenish();
  if (kind == Aeth::kNak) return negative(psn, *headers.aeth);
  if (kind == Aeth::kRnrNak) return rnr(syndrome & Aeth::kValueMask);
  if (kind != Aeth::kAck) return fail(Status::bad_response_error);
  // An ACK for a PSN after an unanswered READ or atomic: the response was lost, or is late.
  if (before(window_.oldest_psn(), psn + 1)) {
    if (!window_.reorders()) return answered_in_part(moved) ? ResponseOutcome{Kind::progress} : response_lost();
    window_.resends.acknowledge_before(psn + 1);
    return response_missing(psn);
  }
  return {moved ? Kind::progress : Kind::duplicate};
}

// Go-back-0: an acknowledgement within a message shows that the message continues, but acknowledges no part of it.
bool Completer::answered_in_part(bool moved) {
  if (window_.attributes.recovery.mode != Recovery::go_back_0) return false;
  const auto* message = window_.oldest_unanswered();
  if (message == nullptr || message->is_rd_atomic()) return false;
  return moved || window_.replenish();
}

ResponseOutcome Completer::negative(Psn psn, const Aeth& aeth) {
  const auto syndrome = aeth.syndrome;
  if (syndrome == Aeth::kSelectiveNak) return selective_nak(psn, Psn(aeth.msn));
  if (window_.reorders() && window_.oldest_psn() != psn && syndrome != Aeth::kSequenceError)
    return refused_ahead(psn, syndrome);
  // All earlier requests are answered, so a response is missing: that of a READ or an atomic.
  if (window_.oldest_psn() != psn) return response_lost();
  // While the RNR timer runs, a sequence error is about packets that will be resent anyway.
  if (syndrome == Aeth::kSequenceError) return window_.rnr_waiting ? ResponseOutcome{Kind::duplicate} : go_back();
  return fail(status_of(syndrome));
}

// The NAK overtook responses to earlier requests: the error waits for those.
ResponseOutcome Completer::refused_ahead(Psn psn, std::uint8_t syndrome) {
  window_.resends.acknowledge_before(psn);
  window_.refused = SendWindow::Refused{psn, status_of(syndrome)};
  return {Kind::progress};
}

ResponseOutcome Completer::rnr(std::uint8_t timer) {
  if (window_.rnr_waiting) return {Kind::duplicate};
  if (window_.rnr_retries_left == 0) return fail(Status::rnr_retry_exceeded);
  if (window_.attributes.rnr_retry != SendWindow::kRetryForever) --window_.rnr_retries_left;
  window_.rewind();
  window_.rnr_waiting = true;
  return {.kind = Kind::rnr, .rewound = true, .placement = {}, .rnr_timer = timer};
}

ResponseOutcome Completer::data_response(const Headers& headers, const OpcodeInfo& row, std::uint32_t payload) {
  const auto psn = headers.bth.psn;
  const bool negative = headers.aeth && (headers.aeth->syndrome & Aeth::kClassMask) != Aeth::kAck;
  if (negative) return fail(Status::bad_response_error);
  auto* message = window_.oldest_unanswered();
  // A response acknowledges the requests before its READ or atomic.
  if (message != nullptr && !message->is_rd_atomic() && window_.acknowledge_before(psn)) {
    window_.replenish();
    message = window_.oldest_unanswered();
  }
  if (message == nullptr) return {Kind::dropped};
  if (!message->is_rd_atomic()) return fail(Status::bad_response_error);
  const auto expected = message->unanswered();
  if (psn != expected) {
    if (!before(expected, psn)) return {Kind::duplicate};
    return window_.reorders() ? take_early(headers, row, payload) : response_lost();
  }
  const bool is_atomic = row.operation == Operation::atomic_acknowledge;
  if (is_atomic != message->is_atomic()) return fail(Status::bad_response_error);
  return is_atomic ? take_atomic(*message, *headers.atomic_ack) : take_read(*message, row, payload);
}

ResponseOutcome Completer::take_read(Message& message, const OpcodeInfo& row, std::uint32_t payload) {
  const auto offset = message.acknowledged * window_.attributes.mtu;
  const auto left = message.response_bytes() - offset;
  const bool last = message.acknowledged + 1 == message.packets;
  if (payload != std::min(left, window_.attributes.mtu)) return fail(Status::bad_response_error);
  // With reordering, or after go-back-0, a response may begin or end anywhere in the message.
  const bool in_order = !window_.reorders() && window_.attributes.recovery.mode != Recovery::go_back_0;
  if (in_order && row.ends() != last) return fail(Status::bad_response_error);
  // A response begins where a request begins; before it may come the rest of the response to an earlier request.
  const bool begins_here = message.acknowledged == message.asked_from;
  if (in_order && (row.begins() ? !begins_here : message.acknowledged == 0)) return fail(Status::bad_response_error);
  window_.advance(message, 1);
  window_.replenish();
  if (payload == 0) return {Kind::progress};
  ++message.placing;
  return {.kind = Kind::progress, .placement = Placement{message.request.id, offset, {}}};
}

ResponseOutcome Completer::take_atomic(Message& message, std::uint64_t original) {
  window_.advance(message, 1);
  window_.replenish();
  ++message.placing;
  return {.kind = Kind::progress, .placement = Placement{message.request.id, 0, original}};
}

// If responses may be reordered, any packet of any requested READ or atomic may arrive.
ResponseOutcome Completer::take_early(const Headers& headers, const OpcodeInfo& row, std::uint32_t payload) {
  const auto psn = headers.bth.psn;
  auto* message = window_.message_at(psn);
  const bool atomic = row.operation == Operation::atomic_acknowledge;
  if (message == nullptr || !message->is_rd_atomic() || atomic != message->is_atomic())
    return fail(Status::bad_response_error);
  const auto offset = static_cast<std::uint32_t>(message->index_of(psn)) * window_.attributes.mtu;
  const auto expected = atomic ? 0 : std::min(message->response_bytes() - offset, window_.attributes.mtu);
  if (payload != expected) return fail(Status::bad_response_error);
  if (window_.resends.has_arrived(psn)) return {Kind::duplicate};
  window_.resends.arrived(psn);
  window_.resends.acknowledge_before(psn);
  auto outcome = response_missing(psn);
  if (atomic || payload != 0) {
    ++message->placing;
    outcome.placement =
        Placement{message->request.id, offset, atomic ? std::optional(*headers.atomic_ack) : std::nullopt};
  }
  return outcome;
}

ResponseOutcome Completer::response_missing(Psn psn) {
  const auto ahead = distance(window_.oldest_psn(), psn);
  if (!window_.attributes.recovery.tells_of_loss(ahead)) return {Kind::progress};
  if (!window_.selective()) return response_lost();
  auto outcome = lose(window_.oldest_psn(), psn);
  if (outcome.kind == Kind::sequence_error) outcome.kind = Kind::implied_sequence_error;
  return outcome;
}

ResponseOutcome Completer::selective_nak(Psn missing, Psn arrived) {
  if (window_.rnr_waiting) return {Kind::duplicate};
  // Go back once for a gap, however many of these NAKs report it.
  if (!window_.selective()) return response_lost();
  if (before(arrived, missing) || !before(arrived, window_.unsent_psn)) return {Kind::dropped};
  window_.resends.acknowledge_before(missing);
  // The arrival of the request of a READ or an atomic does not imply that its response arrived.
  const auto has_response = [&](Psn psn) {
    const auto* message = window_.message_at(psn);
    return message == nullptr || message->is_rd_atomic();
  };
  if (!has_response(arrived)) window_.resends.arrived(arrived);
  if (!has_response(missing)) window_.resends.is_missing(missing);
  return lose(missing, arrived);
}

// A loss costs one retry when it becomes known, until the next progress.
ResponseOutcome Completer::lose(Psn first, Psn end) {
  auto& resends = window_.resends;
  if (!resends.recovering()) {
    if (window_.retries_left == 0) return fail(Status::transport_retry_exceeded);
    --window_.retries_left;
  }
  const bool is_new = resends.lose(first, end, window_.unsent_psn);
  return {.kind = is_new ? Kind::sequence_error : Kind::duplicate};
}

ResponseOutcome Completer::response_lost() {
  if (window_.gap_known) return {Kind::dropped};
  auto outcome = go_back();
  if (outcome.kind == Kind::sequence_error) outcome.kind = Kind::implied_sequence_error;
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

std::optional<Status> Completer::oldest_done() const {
  if (window_.messages.empty()) return std::nullopt;
  const auto& head = window_.messages.front();
  if (head.placing != 0 || head.local != Message::Local::none) return std::nullopt;
  if (window_.draining && !window_.begun(head)) return std::nullopt;
  if (head.error) return head.error;
  // A message without packets is complete at its turn; others when sent and answered.
  if (head.answered()) return Status::success;
  // Without responder resources a READ or atomic would wait for ever.
  const bool starved = window_.attributes.max_rd_atomic == 0 && window_.rd_atomic_outstanding == 0;
  return head.is_rd_atomic() && starved ? std::optional(Status::local_qp_operation_error) : std::nullopt;
}

std::optional<Completion> Completer::take_completion() {
  const auto status = oldest_done();
  return status ? std::optional(retire(*status)) : std::nullopt;
}

std::optional<Completion> Completer::take_flushed() {
  if (window_.messages.empty()) return std::nullopt;
  return retire(window_.messages.front().error.value_or(Status::flushed_error));
}

Completion Completer::retire(Status status) {
  const Completion completion{window_.messages.front().request.id, status};
  window_.retire_front();
  return completion;
}

}  // namespace rnicsim::roce
