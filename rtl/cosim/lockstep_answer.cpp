// The referee's receive side: verdicts on requests, what is owed for them, answers.
#include <algorithm>
#include <utility>

#include "rtl/cosim/lockstep.h"
#include "rtl/cosim/verilated_engine.h"

namespace rnicsim::rtl {
namespace {

using Kind = roce::Verdict::Kind;

Verdict verdict_of(Kind kind) {
  switch (kind) {
    case Kind::drop: return Verdict::drop;
    case Kind::wants_receive: return Verdict::want_receive;
    case Kind::wants_access: return Verdict::want_access;
    case Kind::acknowledge: return Verdict::acknowledge;
    case Kind::reject: return Verdict::reject;
    case Kind::place: return Verdict::place;
    case Kind::read: return Verdict::read;
    case Kind::atomic: return Verdict::atomic;
    case Kind::replay: return Verdict::replay;
  }
  return Verdict::drop;
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

bool is_data(const auto& owed) {
  return owed.kind == decltype(owed.kind)::read || owed.kind == decltype(owed.kind)::atomic;
}
bool is_done(const auto& owed) {
  const bool acknowledges = owed.kind == decltype(owed.kind)::silent || owed.kind == decltype(owed.kind)::acknowledge;
  return acknowledges && owed.placed && owed.result == Result::ok && !owed.has_cqe;
}

}  // namespace

std::uint32_t Lockstep::AnswerSide::rd_atomic_pending() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(owed, [](const Owed& one) { return is_data(one); }));
}

void Lockstep::AnswerSide::fall_silent() {
  owed.clear();
  again.clear();
}

AnswerRecord Lockstep::answer_core(AnswerSide& side, const AnswerRecord& rtl, const VerilatedEngine& engine) {
  AnswerRecord core = rtl;
  // Nothing will be said of these.
  const auto silent = [](const Owed& owed) {
    return owed.kind == Owed::Kind::silent && owed.placed && owed.result == Result::ok && !owed.has_cqe;
  };
  while (!side.owed.empty() && silent(side.owed.front())) side.owed.pop_front();
  switch (rtl.op) {
    case AnswerOp::control: return control(side, core, engine.input<AnswerControl>());
    case AnswerOp::request: return request(side, core, engine.input<Request>());
    case AnswerOp::event: return event(side, core, engine.input<AnswerEvent>());
    case AnswerOp::complete: return complete(side, core);
    case AnswerOp::failed: return failed(side, core);
    case AnswerOp::packet: break;
  }
  return rtl.in_place ? failed_read(side, core, engine.input<AnswerEvent>()) : packet(side, core);
}

AnswerRecord Lockstep::control(AnswerSide& side, AnswerRecord core, const AnswerControl& control) {
  const roce::ResponderAttributes attributes{
      .mtu = roce::mtu_bytes(control.mtu),
      .access = (control.allow_write ? roce::remote_access::kWrite : 0) |
                (control.allow_read ? roce::remote_access::kRead : 0) |
                (control.allow_atomic ? roce::remote_access::kAtomic : 0),
      .max_dest_rd_atomic = control.max_dest_rd_atomic, .min_rnr_timer = control.min_rnr_timer,
      .max_message = control.max_message};
  if (side.alive) {
    core.psn = side.responder.expected_psn().value();
    core.msn = side.responder.msn();
  }
  switch (control.kind) {
    case Control::reset: {
      auto history = std::move(side.history);
      side = {};
      side.history = std::move(history);
      break;
    }
    case Control::start:
      side.responder.start(attributes, roce::Psn(control.psn));
      side.alive = true;
      [[fallthrough]];
    case Control::update:
      side.responder.update(attributes);
      side.remote_qpn = control.remote_qpn;
      side.mtu = attributes.mtu;
      break;
    case Control::error:
      side.fall_silent();
      side.next_owed = 0;
      side.alive = false;
      break;
    case Control::query: break;
  }
  return core;
}

AnswerRecord Lockstep::request(AnswerSide& side, AnswerRecord core, const Request& request) {
  const auto rtl = core.verdict;
  if (!side.alive || side.deaf) {
    core.verdict = Verdict::drop;
    return core;
  }
  if (rtl == Verdict::busy) {
    if (side.owed.empty()) illegal("there is nothing that the request could wait for");
    return core;
  }
  const auto& row = row_of(request.opcode);
  const auto headers = headers_of(request, row);
  roce::Offer offer{.receive_bytes = request.receive_bytes, .access_granted = {},
                    .rd_atomic_pending = side.rd_atomic_pending()};
  if (request.receive_known)
    offer.receive = request.receive_available ? roce::Offer::Receive::available : roce::Offer::Receive::none;
  if (request.access_known) offer.access_granted = request.access_granted;
  const auto verdict = side.responder.receive(headers, request.bytes, offer);
  core.duplicate = verdict.duplicate;
  // To answer a READ or an atomic once more is a favour, which the requester may have to ask for again.
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

AnswerRecord Lockstep::accept(AnswerSide& side, AnswerRecord core, const Request& request,
                              const roce::Verdict& verdict) {
  Owed owed{.kind = Owed::Kind::silent, .index = side.next_owed, .psn = verdict.psn, .msn = verdict.msn, .range = {}};
  switch (core.verdict) {
    case Verdict::drop:
    case Verdict::busy:
    case Verdict::want_receive:
    case Verdict::want_access: return core;
    case Verdict::acknowledge:
      owed.kind = Owed::Kind::acknowledge;
      owed.placed = true;
      owed.syndrome = roce::Aeth::kNoCredits;
      break;
    case Verdict::reject:
      owed.kind = Owed::Kind::nak;
      owed.syndrome = core.syndrome = verdict.syndrome;
      owed.fatal = core.fatal = verdict.fatal;
      owed.placed = true;
      owed.has_cqe = verdict.receive_status.has_value();
      core.receive_status = static_cast<std::uint8_t>(verdict.receive_status.value_or(roce::Status::success));
      core.begins_receive = verdict.begins_receive;
      core.access_event = verdict.access_event;
      core.request_event = verdict.request_event;
      core.psn = verdict.psn.value();
      side.deaf = verdict.fatal;
      break;
    case Verdict::place:
      if (verdict.acknowledge) owed.kind = Owed::Kind::acknowledge;
      owed.syndrome = roce::Aeth::kNoCredits;
      owed.to_receive = core.to_receive = verdict.to_receive_wqe;
      owed.has_cqe = core.completes_receive = verdict.completes_receive;
      owed.placed = request.bytes == 0;
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
    case Verdict::read:
    case Verdict::atomic:
    case Verdict::replay:
      owed.kind = core.verdict == Verdict::read ? Owed::Kind::read : Owed::Kind::atomic;
      owed.syndrome = roce::Aeth::kNoCredits;
      owed.placed = core.verdict != Verdict::atomic;
      owed.range = {request.address, {request.rkey}, request.length};
      owed.original = verdict.original;
      break;
  }
  core.msn = verdict.msn;
  if (verdict.duplicate && is_data(owed)) {
    if (side.again.size() == kHistory) side.again.pop_front();
    side.again.push_back(owed);
    return core;
  }
  core.owed = owed.index;
  side.next_owed = (side.next_owed + 1) % kOwed;
  side.owed.push_back(owed);
  // Those at the front that are done with stand for an acknowledgement only, which takes no room.
  const auto held = std::ranges::find_if(side.owed, [](const Owed& one) { return !is_done(one); });
  if (std::distance(held, side.owed.end()) > std::ptrdiff_t{kOwed}) illegal("more answers owed than there is room for");
  return core;
}

AnswerRecord Lockstep::event(AnswerSide& side, AnswerRecord core, const AnswerEvent& event) {
  if (event.kind != AnswerEvent::Kind::placed && event.kind != AnswerEvent::Kind::atomic) return core;
  const auto owed = std::ranges::find_if(
      side.owed, [&](const Owed& one) { return one.index == event.owed && !one.placed; });
  if (owed == side.owed.end()) return core;
  owed->placed = true;
  owed->result = event.result;
  owed->original = event.original;
  if (event.kind == AnswerEvent::Kind::atomic && event.result == Result::ok)
    side.responder.atomic_done(owed->psn, event.original);
  return core;
}

// The oldest that takes a receive, when all before it are in memory.
AnswerRecord Lockstep::complete(AnswerSide& side, AnswerRecord core) {
  for (auto& owed : side.owed) {
    if (!owed.placed || owed.result != Result::ok || is_data(owed)) break;
    if (!owed.has_cqe) continue;
    owed.has_cqe = false;
    core.owed = owed.index;
    core.psn = owed.psn.value();
    return core;
  }
  illegal("no receive is complete");
  return core;
}

AnswerRecord Lockstep::failed(AnswerSide& side, AnswerRecord core) {
  const auto owed = std::ranges::find_if(side.owed, [](const Owed& one) { return one.result != Result::ok; });
  if (owed == side.owed.end() || !std::all_of(side.owed.begin(), owed, [](const Owed& one) { return one.placed; })) {
    illegal("nothing has failed, or not yet in its turn");
    return core;
  }
  const bool access = !owed->to_receive && owed->result == Result::access;
  core.owed = owed->index;
  core.psn = owed->psn.value();
  core.to_receive = owed->to_receive;
  core.had_cqe = std::exchange(owed->has_cqe, false);
  core.access_event = access;
  owed->kind = Owed::Kind::nak;
  owed->syndrome = access ? roce::Aeth::kRemoteAccessError : roce::Aeth::kRemoteOperationError;
  owed->result = Result::ok;
  owed->fatal = side.deaf = true;
  return core;
}

// An acknowledgement answers for what precedes it, of which nothing may be owed but acknowledgements.
AnswerRecord Lockstep::packet(AnswerSide& side, AnswerRecord core) {
  core.destination = side.remote_qpn;
  if (core.duplicate) {
    // The last that asked for it: of those before it, the RTL may have let go.
    for (auto owed = side.again.end(); owed != side.again.begin();) {
      --owed;
      if (owed->psn + owed->next_packet != roce::Psn(core.psn)) continue;
      core = data_packet(core, side, *owed, true);
      const auto packets = owed->kind == Owed::Kind::read ? roce::packets_for(owed->range.length, side.mtu) : 1;
      if (++owed->next_packet == packets) side.again.erase(owed);
      return core;
    }
    illegal("a duplicate is answered that nobody asked for");
    return core;
  }
  const bool is_ack = core.opcode == static_cast<std::uint8_t>(roce::Opcode::acknowledge);
  while (!side.owed.empty()) {
    auto& owed = side.owed.front();
    if (!owed.placed || owed.result != Result::ok || owed.has_cqe) break;
    if (is_data(owed)) {
      if (is_ack) break;
      core = data_packet(core, side, owed, false);
      const auto packets = owed.kind == Owed::Kind::read ? roce::packets_for(owed.range.length, side.mtu) : 1;
      if (++owed.next_packet == packets) side.owed.pop_front();
      return core;
    }
    const bool is_nak = owed.kind == Owed::Kind::nak;
    const bool this_one = is_ack && owed.kind != Owed::Kind::silent && owed.psn.value() == core.psn &&
                          owed.msn == core.msn && owed.syndrome == core.syndrome;
    if (this_one) core.fatal = owed.fatal;
    // A NAK is told itself; an acknowledgement may be left to a later one.
    if (!this_one && is_nak) break;
    side.owed.pop_front();
    if (this_one && core.fatal) side.fall_silent();
    if (this_one) return core;
  }
  illegal("this answer is not owed, or not yet");
  return core;
}

AnswerRecord Lockstep::data_packet(AnswerRecord core, const AnswerSide& side, const Owed& owed, bool duplicate) {
  core.syndrome = owed.syndrome;
  core.psn = (owed.psn + owed.next_packet).value();
  if (!duplicate) core.msn = owed.msn;
  if (owed.kind == Owed::Kind::atomic) {
    core.opcode = static_cast<std::uint8_t>(roce::Opcode::atomic_acknowledge);
    core.original = owed.original;
    return core;
  }
  const auto packets = roce::packets_for(owed.range.length, side.mtu);
  const auto position = roce::position_of(owed.next_packet, packets);
  core.opcode = static_cast<std::uint8_t>(roce::rc_opcode(roce::Operation::read_response, position));
  core.address = owed.range.address + std::uint64_t{owed.next_packet} * side.mtu;
  core.rkey = owed.range.rkey.value;
  core.length = std::min(side.mtu, owed.range.length - owed.next_packet * side.mtu);
  return core;
}

// Data of a READ could not be had: a NAK in place of its packet, and nothing behind it.
AnswerRecord Lockstep::failed_read(AnswerSide& side, AnswerRecord core, const AnswerEvent& event) {
  side.deaf = true;
  side.fall_silent();
  core.opcode = static_cast<std::uint8_t>(roce::Opcode::acknowledge);
  core.psn = event.psn;
  core.syndrome =
      event.result == Result::operation ? roce::Aeth::kRemoteOperationError : roce::Aeth::kRemoteAccessError;
  return core;
}

}  // namespace rnicsim::rtl
