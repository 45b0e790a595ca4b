// SPDX-License-Identifier: Apache-2.0
// Answers of the responder in the engine shell: payload that reached memory, completed receives, packets that leave.
#include <algorithm>
#include <iterator>
#include <utility>

#include "model/base/kernel.h"
#include "model/nic/engine/shell/engine_cqes.h"
#include "model/nic/engine/shell/engine_shell.h"

namespace rnicsim::nic {
namespace {

constexpr std::size_t kAnswersAhead = 32;  // packets of READ responses that wait for their payload
constexpr std::uint64_t kPieceState = 80;  // bytes that each piece counts in read_ahead, besides its own

}  // namespace

void EngineShell::payload_placed(Qp& qp, std::uint64_t argument, AccessResult result) {
  const auto at = AnswerAt::of(argument);
  if (result == AccessResult::ok) tell_placed(qp, at);
  const auto cqe = std::ranges::find(qp.cqes, at.pending_answer, &Qp::PendingCqe::pending_answer);
  if (cqe != qp.cqes.end()) cqe->write.behind_payload = true;
  core_->placed(qp.slot, at.pending_answer, memory_result(result));
  qp.waits = false;
}

void EngineShell::tell_placed(const Qp& qp, const AnswerAt& at) const {
  if (!trace_.request_placed || qp.state == roce::QpState::error) return;
  const auto cqe = std::ranges::find(qp.cqes, at.pending_answer, &Qp::PendingCqe::pending_answer);
  const bool completes = cqe != qp.cqes.end();
  trace_.request_placed({qp.qpn, at.psn, completes ? std::optional(cqe->receive_index) : std::nullopt});
}

void EngineShell::start_atomic(roce::Slot slot, roce::AnswerId pending_answer, roce::Psn psn,
                               const roce::AtomicEth& operation, bool is_swap, std::uint32_t domain) {
  auto& qp = of(slot);
  out_.atomic({issue(qp, Purpose::atomic, AnswerAt{pending_answer, psn}.argument()), qp.qpn,
               qp.of_domain() ? domain : qp.context.pd, is_swap, operation});
}

void EngineShell::invalidate(roce::Slot slot, roce::AnswerId pending_answer, roce::Rkey key) {
  auto& qp = of(slot);
  out_.invalidate({issue(qp, Purpose::remote_invalidate, pending_answer), qp.qpn, qp.context.pd, key.value});
}

void EngineShell::receive_completed(roce::Slot slot, roce::AnswerId pending_answer) {
  auto& qp = of(slot);
  if (qp.cqes.empty() || qp.cqes.front().pending_answer != pending_answer) return;
  auto write = std::move(qp.cqes.front().write);
  qp.cqes.pop_front();
  if (write.cqe.syndrome != roce::Status::success) count_receive_error(write.cqe.syndrome);
  out_.cqe(std::move(write));
}

// A key that cannot be invalidated is an error of the responder's program. The receive completes with the error; the
// requester gets no answer.
void EngineShell::key_invalidated(Qp& qp, roce::AnswerId pending_answer, AccessResult result) {
  if (result == AccessResult::ok) {
    core_->invalidated(qp.slot, pending_answer);
    qp.waits = false;
    return pump_inbound(qp);
  }
  fail_receive(qp, pending_answer, roce::Status::remote_invalid_request_error);
  fail(qp);
}

// Completes one receive with an error: its message's last packet may have come, or not.
void EngineShell::fail_receive(Qp& qp, roce::AnswerId pending_answer, roce::Status status) {
  auto& ring = qp.receive_ring;
  const auto cqe = std::ranges::find_if(
      qp.cqes, [pending_answer](const Qp::PendingCqe& one) { return one.pending_answer >= pending_answer; });
  if (cqe == qp.cqes.end() && !ring.filling()) return;
  const bool whole = cqe != qp.cqes.end();
  auto write = whole ? receive_error(qp, *cqe, status) : receive_error(qp, ring.filling()->index, status);
  whole ? void(qp.cqes.erase(cqe)) : ring.filled();
  count_receive_error(status);
  out_.cqe(std::move(write));
}

void EngineShell::count_receive_error(roce::Status status) {
  ++counters_.resp_cqe_error;
  if (status == roce::Status::flushed_error) ++counters_.resp_cqe_flush_error;
  if (status == roce::Status::local_length_error) ++counters_.resp_local_length_error;
}

void EngineShell::placement_failed(roce::Slot slot, const roce::PlacementFailure& failure) {
  auto& qp = of(slot);
  const bool completes = failure.to_receive || failure.completes_receive;
  qp.drops_requests |= qp.reliable();
  if (completes) {
    fail_receive(qp, failure.pending_answer,
                 failure.to_receive ? roce::Status::local_protection_error : roce::Status::local_access_error);
    if (!qp.reliable()) fail(qp);
  } else if (qp.reliable()) {
    qp.fatal_event = failure.refused ? EventType::qp_access_error : EventType::qp_fatal;
  } else {
    ++counters_.silently_dropped;
  }
}

bool EngineShell::answer_waits(const Qp& qp) const {
  if (qp.answers.size() >= kAnswersAhead) return false;
  const auto bytes = core_->next_answer(qp.slot);
  return bytes && qp.answers.all_asked() && (*bytes == 0 || may_read(qp, *bytes));
}

// The READ response data that a QP awaits is limited in bytes, however it is divided into packets: so its rate is the
// limit over the time of a read, at any MTU. Smaller pieces arrive sooner, but no more of them are in flight.
bool EngineShell::may_read(const Qp& qp, std::uint32_t bytes) const {
  if (qp.answers.awaited() == 0) return true;
  const auto awaited = qp.answers.awaited() + std::min(bytes, limits_.read_piece);
  return awaited + (qp.answers.pieces() + 1) * kPieceState <= limits_.read_ahead;
}

void EngineShell::read_answers(Qp& qp) {
  for (auto* entry = qp.answers.unasked(); entry != nullptr && may_read(qp, entry->rest.bytes);
       entry = qp.answers.unasked()) {
    const auto [read, offset] = qp.answers.ask(*entry, limits_.read_piece);
    out_.gather({issue(qp, Purpose::answer_gather, PieceAt{entry->sequence, offset}.argument()),
                 qp.qpn,
                 read.pd,
                 access::kRemoteRead,
                 true,
                 {{read.key, read.address, read.bytes}}});
  }
}

TransmitWork EngineShell::send_answer(Qp& qp, std::uint8_t credit_class) {
  auto& entry = qp.answers.add(Packet::make());
  entry.credit_class = credit_class;
  const auto answer = core_->answer(qp.slot, entry.packet->headers);
  const auto bytes = answer.is_read ? answer.range.length : 0;
  room_.take(credit_class, bytes);
  if (qp.mark_to_echo && !answer.is_read) {
    entry.packet->headers.bth.becn = true;
    qp.mark_to_echo = false;
  }
  if (qp.returns && !answer.is_read) give_back_telemetry(qp, *entry.packet);
  const bool brings = answer.is_read || entry.packet->headers.atomic_ack.has_value();
  if (bytes == 0) {
    entry.ready = true;
  } else {
    if (qp.congestion || acks_reads_) response_sent(qp, entry, bytes);
    const auto pd = qp.of_domain() ? answer.domain : qp.context.pd;
    entry.bytes = bytes;
    PacketLane::expect(entry, {pd, answer.range.rkey.value, answer.range.address, bytes});
    read_answers(qp);
  }
  emit_ready(qp, qp.answers);
  if (answer.fatal) {
    if (qp.fatal_event) out_.event({*qp.fatal_event, qp.qpn.value});
    fail(qp);
  } else {
    core_->settle_answers(qp.slot);
    qp.waits = false;
    pump_inbound(qp);
  }
  const auto kind = brings ? TransmitWork::Kind::read_response : TransmitWork::Kind::acknowledge;
  return {
      .unit = 0, .qpn = qp.qpn, .kind = kind, .begins = answer.begins, .payload = static_cast<std::uint16_t>(bytes)};
}

void EngineShell::answer_gathered(Qp& qp, std::uint64_t argument, DmaDone& done) {
  const auto [sequence, offset] = PieceAt::of(argument);
  auto* entry = qp.answers.find(sequence);
  if (entry == nullptr) return;
  if (done.result == AccessResult::ok) {
    qp.answers.piece_arrived(*entry, offset, std::move(done.payload));
    read_answers(qp);
    return emit_ready(qp, qp.answers);
  }
  // The bytes of a READ response could not be read: a NAK is sent instead, and nothing after it.
  const auto psn = entry->packet->headers.bth.psn;
  const auto last = qp.answers.last().packet;
  const auto dropped = drop(qp.answers, sequence);
  if (qp.state == roce::QpState::error) return move_nak(qp, last, psn);
  const auto result = memory_result(done.result);
  qp.drops_requests = true;
  qp.fatal_event = result == roce::MemoryResult::unreachable ? EventType::qp_fatal : EventType::qp_access_error;
  core_->answer_unreadable(qp.slot, psn, result, dropped);
}

// Bytes of an earlier packet could not be read either. A NAK that had its turn was dropped with the packets after the
// earlier one: it is sent for the earlier packet, since the requester would get no other answer.
void EngineShell::move_nak(Qp& qp, const PacketRef& dropped, roce::Psn psn) {
  const auto& aeth = dropped->headers.aeth;
  if (!aeth || (aeth->syndrome & roce::Aeth::kClassMask) != roce::Aeth::kNak) return;
  dropped->headers.bth.psn = psn;
  auto& entry = qp.answers.add(dropped);
  entry.credit_class = qp.credit_class;
  entry.ready = true;
  room_.take(entry.credit_class, 0);
  emit_ready(qp, qp.answers);
}

CqeWrite EngineShell::receive_error(const Qp& qp, std::uint16_t index, roce::Status status) const {
  auto write = receive_error_cqe(qp.qpn, qp.receive_cqn(), index, status);
  if (qp.of_domain()) name_queue(write, qp.shared.srqn, qp.shared.life);
  return write;
}

// The error replaces the pending completion. A domain's QP may complete to another queue than the one of its last
// receive.
CqeWrite EngineShell::receive_error(const Qp& qp, const Qp::PendingCqe& pending_answer, roce::Status status) const {
  if (!qp.of_domain()) return receive_error(qp, pending_answer.receive_index, status);
  auto write = receive_error_cqe(qp.qpn, pending_answer.write.cqn, pending_answer.receive_index, status);
  name_queue(write, pending_answer.write.cqe.source_qpn, pending_answer.write.life);
  return write;
}

}  // namespace rnicsim::nic
