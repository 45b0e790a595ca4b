// SPDX-License-Identifier: Apache-2.0
// Referee for the receive side: verdicts on requests, pending answers, answers.
#include <algorithm>
#include <iterator>
#include <utility>

#include "rtl/cosim/lockstep.h"
#include "rtl/cosim/verilated_engine.h"

namespace rnicsim::rtl {
namespace {

using Kind = roce::Verdict::Kind;

Verdict verdict_of(Kind kind) {
  switch (kind) {
    case Kind::drop: return Verdict::drop;
    case Kind::busy: return Verdict::busy;
    case Kind::wants_receive: return Verdict::want_receive;
    case Kind::wants_access: return Verdict::want_access;
    // XRC and packets kept out of order: the engine in SystemVerilog has neither.
    case Kind::wants_queue:
    case Kind::keep: return Verdict::drop;
    case Kind::acknowledge: return Verdict::acknowledge;
    case Kind::reject: return Verdict::reject;
    case Kind::place: return Verdict::place;
    case Kind::read: return Verdict::read;
    case Kind::atomic: return Verdict::atomic;
    case Kind::replay: return Verdict::replay;
  }
  return Verdict::drop;
}

roce::MemoryResult as_memory(Result result) {
  switch (result) {
    case Result::ok: return roce::MemoryResult::ok;
    case Result::access: return roce::MemoryResult::refused;
    case Result::operation: return roce::MemoryResult::unreachable;
  }
  return roce::MemoryResult::unreachable;
}

roce::Headers headers_of(const Request& request, const roce::OpcodeInfo& row) {
  roce::Headers headers;
  headers.bth.opcode = row.opcode;
  headers.bth.psn = roce::Psn(request.psn);
  headers.bth.ack_request = request.ack_request;
  if (row.has(roce::header::kReth)) headers.reth = roce::Reth{request.address, {request.rkey}, request.length};
  if (row.has(roce::header::kAtomic)) headers.atomic = roce::AtomicEth{request.address, {request.rkey}, 0, 0};
  if (row.has(roce::header::kImmediate)) headers.immediate = 0;
  return headers;
}

// Expected record of this packet. The record of a duplicate has no MSN.
AnswerRecord with(AnswerRecord core, const roce::Headers& headers, const roce::SentAnswer& sent) {
  core.opcode = static_cast<std::uint8_t>(headers.bth.opcode);
  core.destination = headers.bth.destination.value;
  core.psn = headers.bth.psn.value();
  core.fatal = sent.fatal;
  if (headers.aeth) {
    core.syndrome = headers.aeth->syndrome;
    core.msn = headers.aeth->msn;
  }
  if (headers.atomic_ack) core.original = *headers.atomic_ack;
  if (!sent.is_read) return core;
  core.address = sent.range.address;
  core.rkey = sent.range.rkey.value;
  core.length = sent.range.length;
  return core;
}

}  // namespace

AnswerRecord Lockstep::answer_core(AnswerSide& side, const AnswerRecord& rtl, const VerilatedEngine& engine) {
  switch (rtl.op) {
    case AnswerOp::control: return control(side, rtl, engine.input<AnswerControl>());
    case AnswerOp::request: return request(side, rtl, engine.input<Request>());
    case AnswerOp::event: return event(side, rtl, engine.input<AnswerEvent>());
    case AnswerOp::complete:
    case AnswerOp::failed: return next_of(side, rtl);
    case AnswerOp::packet: break;
  }
  if (rtl.in_place) return failed_read(side, rtl, engine.input<AnswerEvent>());
  return rtl.duplicate ? packet_again(side, rtl) : packet(side, rtl);
}

AnswerRecord Lockstep::control(AnswerSide& side, AnswerRecord core, const AnswerControl& control) {
  const roce::ResponderAttributes attributes{.remote = {control.remote_qpn},
                                             .mtu = roce::mtu_bytes(control.mtu),
                                             .access = (control.allow_write ? roce::remote_access::kWrite : 0) |
                                                       (control.allow_read ? roce::remote_access::kRead : 0) |
                                                       (control.allow_atomic ? roce::remote_access::kAtomic : 0),
                                             .max_dest_rd_atomic = control.max_dest_rd_atomic,
                                             .min_rnr_timer = control.min_rnr_timer,
                                             .max_message = control.max_message};
  if (side.alive) {
    core.psn = side.core.responder().expected_psn().value();
    core.msn = side.core.responder().msn();
  }
  switch (control.kind) {
    case Control::reset: slots_[core.slot].answers = std::make_unique<AnswerSide>(core.slot, actions()); break;
    case Control::start:
      side.core.start(attributes, roce::Psn(control.psn));
      side.alive = true;
      [[fallthrough]];
    case Control::update:
      side.core.update(attributes);
      side.attributes = attributes;
      break;
    case Control::error:
      side.core.fail();
      side.again.clear();
      side.to_come.clear();
      side.alive = false;
      break;
    case Control::query: break;
  }
  return core;
}

AnswerRecord Lockstep::request(AnswerSide& side, AnswerRecord core, const Request& request) {
  const auto rtl = core.verdict;
  if (!side.alive || side.drops_requests) {
    core.verdict = Verdict::drop;
    return core;
  }
  if (rtl == Verdict::busy) {
    if (side.core.pending_answer() == 0 && side.to_come.empty()) illegal("the request has no reason to wait");
    return core;
  }
  const auto& row = row_of(request.opcode);
  roce::Offer offer{.receive_bytes = request.receive_bytes, .access_granted = {}};
  if (request.receive_known)
    offer.receive = request.receive_available ? roce::Offer::Receive::available : roce::Offer::Receive::none;
  if (request.access_known) offer.access_granted = request.access_granted;
  const auto verdict = side.core.validate(headers_of(request, row), request.bytes, offer);
  core.duplicate = verdict.duplicate;
  // Repeating a READ or an atomic is optional: the requester may have to ask again.
  const bool spared = verdict.duplicate && rtl == Verdict::drop &&
                      (row.operation == roce::Operation::read || row.operation == roce::Operation::atomic);
  core.verdict = spared ? Verdict::drop : verdict_of(verdict.kind);
  if (core.verdict == Verdict::want_access) {
    core.address = verdict.range.address;
    core.rkey = verdict.range.rkey.value;
    core.length = verdict.range.length;
  }
  return rtl == core.verdict ? accept(side, core, request, verdict) : core;
}

AnswerRecord Lockstep::accept(AnswerSide& side, AnswerRecord core, const Request& request, roce::Verdict verdict) {
  switch (core.verdict) {
    case Verdict::drop:
    case Verdict::busy:
    case Verdict::want_receive:
    case Verdict::want_access: return core;
    case Verdict::reject:
      core.syndrome = verdict.syndrome;
      core.fatal = side.drops_requests = verdict.fatal;
      core.receive_status = static_cast<std::uint8_t>(verdict.receive_status.value_or(roce::Status::success));
      core.begins_receive = verdict.begins_receive;
      core.access_event = verdict.access_event;
      core.request_event = verdict.request_event;
      core.psn = verdict.psn.value();
      break;
    case Verdict::place:
      if (side.core.must_wait(request.bytes)) illegal("a write overtakes an atomic");
      core.to_receive = verdict.to_receive_wqe;
      core.completes_receive = verdict.completes_receive;
      core.completes = verdict.completes;
      core.begins_receive = verdict.begins_receive;
      core.offset = verdict.offset;
      core.length = request.bytes;
      if (verdict.completes) core.message_bytes = verdict.message_bytes;
      if (!verdict.to_receive_wqe) {
        core.address = verdict.range.address;
        core.rkey = verdict.range.rkey.value;
      }
      break;
    default: break;
  }
  core.msn = verdict.msn;
  if (verdict.duplicate && core.verdict != Verdict::acknowledge) {
    if (side.again.size() == kHistory) side.again.pop_front();
    verdict.range = {request.address, {request.rkey}, request.length};
    side.again.push_back({verdict});
    return core;
  }
  core.pending_answer = static_cast<std::uint8_t>(side.next_answer_id++ % kPendingAnswers);
  side.core.accept(verdict, request.bytes);
  side.core.settle_ahead();
  if (side.core.pending_answer() > kPendingAnswers) illegal("more pending answers than the queue has entries");
  return core;
}

AnswerRecord Lockstep::event(AnswerSide& side, AnswerRecord core, const AnswerEvent& event) {
  const auto pending_answer = answer_of(side.next_answer_id - 1, event.pending_answer);
  if (event.kind == AnswerEvent::Kind::placed) side.core.placed(pending_answer, as_memory(event.result));
  if (event.kind == AnswerEvent::Kind::atomic)
    side.core.atomic_executed(pending_answer, as_memory(event.result), event.original);
  side.core.settle_ahead();
  return core;
}

void Lockstep::receive_completed(roce::Slot slot, roce::AnswerId pending_answer) {
  AnswerRecord record{.slot = static_cast<std::uint8_t>(slot),
                      .op = AnswerOp::complete,
                      .pending_answer = static_cast<std::uint8_t>(pending_answer % kPendingAnswers)};
  slots_[slot].answers->to_come.push_back({pending_answer, record});
}

void Lockstep::placement_failed(roce::Slot slot, const roce::PlacementFailure& failure) {
  auto& side = *slots_[slot].answers;
  side.drops_requests = true;
  AnswerRecord record{.slot = static_cast<std::uint8_t>(slot),
                      .op = AnswerOp::failed,
                      .to_receive = failure.to_receive,
                      .access_event = failure.refused,
                      .pending_answer = static_cast<std::uint8_t>(failure.pending_answer % kPendingAnswers),
                      .had_cqe = failure.completes_receive};
  side.to_come.push_back({failure.pending_answer, record});
}

// The oldest message that takes a receive, once all before it are in memory; or a failed placement.
AnswerRecord Lockstep::next_of(AnswerSide& side, AnswerRecord core) {
  if (side.to_come.empty() || side.to_come.front().record.op != core.op) {
    illegal(core.op == AnswerOp::complete ? "no receive is complete"
                                          : "no message has failed, or earlier messages are not yet reported");
    return core;
  }
  const auto& record = side.to_come.front().record;
  core.pending_answer = record.pending_answer;
  core.to_receive = record.to_receive;
  core.had_cqe = record.had_cqe;
  core.access_event = record.access_event;
  side.to_come.pop_front();
  return core;
}

// An acknowledgement acknowledges everything before it; the RTL chooses up to which PSN.
AnswerRecord Lockstep::packet(AnswerSide& side, AnswerRecord core) {
  if (!side.core.next()) {
    illegal("no answer is pending, or the answer is too early");
    return core;
  }
  roce::Headers headers;
  const auto sent = side.core.answer(headers, roce::Psn(core.psn));
  core = with(core, headers, sent);
  const auto oldest = side.core.oldest();
  if (!side.to_come.empty() && (!oldest || side.to_come.front().pending_answer < *oldest))
    illegal("the answer's receive was not completed");
  if (sent.fatal) {
    side.core.fail();
    side.again.clear();
    side.to_come.clear();
    return core;
  }
  side.core.settle_ahead();
  return core;
}

// The last request for this repetition; the RTL may have dropped earlier ones.
AnswerRecord Lockstep::packet_again(AnswerSide& side, AnswerRecord core) {
  const auto asked = std::find_if(side.again.rbegin(), side.again.rend(), [&](const AnswerSide::Again& one) {
    return one.verdict.psn + one.next_packet == roce::Psn(core.psn);
  });
  if (asked == side.again.rend()) {
    illegal("an answer to a duplicate without a duplicate request");
    return core;
  }
  auto& [verdict, next] = *asked;
  const auto& range = verdict.range;
  const auto mtu = side.attributes.mtu;
  const bool is_read = verdict.kind == Kind::read;
  const auto packets = is_read ? roce::packets_for(range.length, mtu) : 1;
  core.destination = side.attributes.remote.value;
  core.syndrome = roce::Aeth::kNoCredits;
  if (is_read) {
    const auto position = roce::position_of(next, packets);
    core.opcode = static_cast<std::uint8_t>(roce::rc_opcode(roce::Operation::read_response, position));
    core.address = range.address + std::uint64_t{next} * mtu;
    core.rkey = range.rkey.value;
    core.length = std::min(mtu, range.length - next * mtu);
  } else {
    core.opcode = static_cast<std::uint8_t>(roce::Opcode::atomic_acknowledge);
    core.original = verdict.original;
  }
  if (++next == packets) side.again.erase(std::prev(asked.base()));
  return core;
}

// Data of a READ could not be read: a NAK replaces the packet, and nothing follows.
AnswerRecord Lockstep::failed_read(AnswerSide& side, AnswerRecord core, const AnswerEvent& event) {
  side.drops_requests = true;
  side.again.clear();
  side.to_come.clear();
  side.core.unreadable(roce::Psn(event.psn), as_memory(event.result));
  roce::Headers headers;
  return with(core, headers, side.core.answer(headers));
}

}  // namespace rnicsim::rtl
