// SPDX-License-Identifier: Apache-2.0
// The receive side: requests, placed payload, completed receives, answers.
#include <utility>

#include "rtl/cosim/rtl_core.h"

namespace rnicsim::rtl {
namespace {

using Kind = roce::Verdict::Kind;

Result result_of(roce::MemoryResult result) {
  switch (result) {
    case roce::MemoryResult::ok: return Result::ok;
    case roce::MemoryResult::refused: return Result::access;
    case roce::MemoryResult::unreachable: return Result::operation;
  }
  return Result::operation;
}

Kind kind_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::drop: return Kind::drop;
    case Verdict::busy: return Kind::busy;
    case Verdict::want_receive: return Kind::wants_receive;
    case Verdict::want_access: return Kind::wants_access;
    case Verdict::acknowledge: return Kind::acknowledge;
    case Verdict::reject: return Kind::reject;
    case Verdict::place: return Kind::place;
    case Verdict::read: return Kind::read;
    case Verdict::atomic: return Kind::atomic;
    case Verdict::replay: return Kind::replay;
  }
  return Kind::drop;
}

std::uint32_t access_for(roce::Operation operation) {
  switch (operation) {
    case roce::Operation::write: return roce::remote_access::kWrite;
    case roce::Operation::read: return roce::remote_access::kRead;
    default: return roce::remote_access::kAtomic;
  }
}

bool is_read_response(const AnswerRecord& record) {
  return roce::info(static_cast<roce::Opcode>(record.opcode)).operation == roce::Operation::read_response;
}

}  // namespace

void RtlCore::request(roce::Slot slot, const roce::Headers& headers, std::uint32_t payload, const roce::Offer& offer) {
  using Receive = roce::Offer::Receive;
  Request request{.slot = static_cast<std::uint8_t>(slot),
                  .opcode = static_cast<std::uint8_t>(headers.bth.opcode),
                  .psn = headers.bth.psn.value(),
                  .ack_request = headers.bth.ack_request,
                  .bytes = bytes_of(payload),
                  .receive_known = offer.receive != Receive::unknown,
                  .receive_available = offer.receive == Receive::available,
                  .receive_bytes = offer.receive_bytes,
                  .access_known = offer.access_granted.has_value(),
                  .access_granted = offer.access_granted.value_or(false)};
  auto& life = qps_[slot].life;
  if (headers.reth) {
    request.address = headers.reth->address;
    request.rkey = headers.reth->rkey.value;
    request.length = headers.reth->length;
  }
  if (headers.atomic) {
    request.address = headers.atomic->address;
    request.rkey = headers.atomic->rkey.value;
    life.operands = *headers.atomic;
  }
  life.request = request;
  life.judging = true;
  feed(request);
}

void RtlCore::placed(roce::Slot slot, roce::AnswerId pending_answer, roce::MemoryResult result) {
  feed(AnswerEvent{.slot = static_cast<std::uint8_t>(slot),
                   .kind = AnswerEvent::Kind::placed,
                   .pending_answer = static_cast<std::uint8_t>(pending_answer % kPendingAnswers),
                   .result = result_of(result)});
}

void RtlCore::atomic_executed(roce::Slot slot, roce::AnswerId pending_answer, roce::MemoryResult result,
                              std::uint64_t original) {
  const auto index = static_cast<std::uint8_t>(pending_answer % kPendingAnswers);
  feed(AnswerEvent{.slot = static_cast<std::uint8_t>(slot),
                   .kind = AnswerEvent::Kind::atomic,
                   .pending_answer = index,
                   .saved = qps_[slot].life.saved[index],
                   .result = result_of(result),
                   .original = original});
}

std::optional<std::uint32_t> RtlCore::next_answer(roce::Slot slot) const {
  const auto& packets = qps_[slot].life.answer_packets;
  if (packets.empty()) return std::nullopt;
  return is_read_response(packets.front()) ? packets.front().length : 0;
}

roce::SentAnswer RtlCore::answer(roce::Slot slot, roce::Headers& headers) {
  auto& packets = qps_[slot].life.answer_packets;
  const auto record = packets.front();
  packets.pop_front();
  const auto& row = roce::info(static_cast<roce::Opcode>(record.opcode));
  headers.bth.opcode = row.opcode;
  headers.bth.destination = {record.destination};
  headers.bth.psn = roce::Psn(record.psn);
  if (row.has(roce::header::kAeth)) headers.aeth = roce::Aeth{record.syndrome, record.msn};
  if (row.has(roce::header::kAtomicAck)) headers.atomic_ack = record.original;
  if (!is_read_response(record)) return {.fatal = record.fatal, .range = {}};
  return {.is_read = true, .begins = row.begins(), .range = {record.address, {record.rkey}, record.length}};
}

void RtlCore::answer_unreadable(roce::Slot slot, roce::Psn psn, roce::MemoryResult result, std::uint32_t packets) {
  auto& life = qps_[slot].life;
  AnswerEvent event{.slot = static_cast<std::uint8_t>(slot),
                    .kind = AnswerEvent::Kind::left,
                    .count = static_cast<std::uint8_t>(packets + life.answer_packets.size())};
  life.answer_packets.clear();
  life.answers_void = true;
  feed(event);
  feed(AnswerEvent{
      .slot = event.slot, .kind = AnswerEvent::Kind::failed, .result = result_of(result), .psn = psn.value()});
}

void RtlCore::take(const AnswerRecord& record) {
  const roce::Slot slot = record.slot;
  auto& qp = qps_[slot];
  if (record.op == AnswerOp::control) {
    const auto kind = rtl_.input<AnswerControl>().kind;
    if (kind == Control::reset || kind == Control::error) --qp.answer_void;
    if (kind == Control::query) answered(asked_of_answers_, &Query::answer, record);
    return;
  }
  if (!qp.open || qp.answer_void != 0) return;
  auto& life = qp.life;
  const auto pending_answer = answer_of(life.pending_answer, record.pending_answer);
  switch (record.op) {
    case AnswerOp::request: validated(slot, life, record); break;
    case AnswerOp::packet:
      if (!life.answers_void || record.fatal) life.answer_packets.push_back(AnswerRecord{record});
      break;
    case AnswerOp::complete: actions_->receive_completed(slot, pending_answer); break;
    case AnswerOp::failed:
      actions_->placement_failed(slot, {.pending_answer = pending_answer,
                                        .to_receive = record.to_receive,
                                        .completes_receive = record.had_cqe,
                                        .refused = record.access_event});
      break;
    default: break;
  }
  actions_->moved(slot, record.op != AnswerOp::request);
}

void RtlCore::validated(roce::Slot slot, Life& life, const AnswerRecord& record) {
  life.judging = false;
  roce::Verdict verdict{kind_of(record.verdict)};
  const bool accepted = verdict.kind == Kind::place || verdict.kind == Kind::reject || verdict.kind == Kind::read ||
                        verdict.kind == Kind::atomic || verdict.kind == Kind::acknowledge;
  if (accepted && !(record.duplicate && verdict.kind == Kind::read))
    life.pending_answer += (record.pending_answer - life.pending_answer) % kPendingAnswers;
  verdict.pending_answer = life.pending_answer;
  verdict.to_receive_wqe = record.to_receive;
  verdict.offset = record.offset;
  verdict.range = {record.address, {record.rkey}, record.length};
  verdict.access = access_for(roce::info(static_cast<roce::Opcode>(life.request.opcode)).operation);
  verdict.begins_receive = record.begins_receive;
  verdict.completes = record.completes;
  verdict.completes_receive = record.completes_receive;
  verdict.duplicate = record.duplicate;
  verdict.message_bytes = record.message_bytes;
  verdict.syndrome = record.syndrome;
  verdict.fatal = record.fatal;
  if (record.receive_status != 0) verdict.receive_status = static_cast<roce::Status>(record.receive_status);
  verdict.access_event = record.access_event;
  verdict.request_event = record.request_event;
  actions_->validated(slot, verdict);
  if (verdict.kind != Kind::atomic) return;
  life.saved[verdict.pending_answer % kPendingAnswers] = record.saved;
  const bool is_swap = life.request.opcode == static_cast<std::uint8_t>(roce::Opcode::compare_swap);
  actions_->start_atomic(slot, verdict.pending_answer, roce::Psn(life.request.psn), life.operands, is_swap, 0);
}

}  // namespace rnicsim::rtl
