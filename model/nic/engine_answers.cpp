// The responder's answers: what the model engine owes for requests, in order, each when its payload has reached memory.
#include <algorithm>
#include <utility>

#include "model/nic/model_engine.h"

namespace rnicsim::nic {
namespace {

constexpr std::size_t kPacketsAhead = 32;  // packets of READ responses that wait for their payload

}  // namespace

// A requester that went back wants its answers in the order of their PSNs: that of a duplicate goes before what is owed
// to later requests, and one that is owed already is not owed twice.
void ModelEngine::owe_again(Qp& qp, Response response) {
  ++counters_.duplicate_request;
  for (const auto& owed : qp.responses) {
    const bool has_data = owed.kind == Response::Kind::read || owed.kind == Response::Kind::atomic;
    const auto packets = owed.kind == Response::Kind::read ? roce::packets_for(owed.range.length, qp.mtu()) : 1;
    const bool covered = !before(response.psn, owed.psn + owed.next_packet) && before(response.psn, owed.psn + packets);
    if (has_data && covered) return;
  }
  ++qp.duplicates_pending;
  qp.responses.push_back(std::move(response));
  const auto last = std::prev(qp.responses.end());
  auto behind = last;
  while (behind != qp.responses.begin() && before(last->psn, std::prev(behind)->psn)) --behind;
  qp.responses.splice(behind, qp.responses, last);
}

void ModelEngine::owe_read(Qp& qp, const roce::Verdict& verdict) {
  Response response{.kind = Response::Kind::read,
                    .sequence = qp.next_response++,
                    .psn = verdict.psn,
                    .msn = verdict.msn,
                    .duplicate = verdict.duplicate,
                    .range = verdict.range};
  if (verdict.duplicate) return owe_again(qp, std::move(response));
  ++qp.rd_atomic_pending;
  qp.responses.push_back(std::move(response));
}

void ModelEngine::owe_atomic(Qp& qp, const roce::Verdict& verdict) {
  Response response{.kind = Response::Kind::atomic, .sequence = qp.next_response++, .psn = verdict.psn,
                    .msn = verdict.msn, .duplicate = verdict.duplicate, .is_swap = verdict.is_swap,
                    .original = verdict.original};
  if (verdict.duplicate) return owe_again(qp, std::move(response));
  response.placing = true;
  response.atomic = verdict.atomic;
  ++qp.rd_atomic_pending;
  ++qp.atomics_pending;
  qp.responses.push_back(std::move(response));
  start_atomics(qp);
}

// Atomics follow one another at once, but wait for the writes before them.
void ModelEngine::start_atomics(Qp& qp) {
  if (qp.atomics_pending == 0) return;
  for (auto& response : qp.responses) {
    if (response.kind != Response::Kind::atomic && response.placing) return;
    if (!response.atomic) continue;
    const auto operation = *std::exchange(response.atomic, std::nullopt);
    out_.atomic({issue(qp, Purpose::atomic, response.sequence), qp.qpn, qp.context.pd, response.is_swap, operation});
  }
}

void ModelEngine::atomic_carried_out(Qp& qp, std::uint64_t sequence, const AtomicDone& done) {
  auto* response = qp.response(sequence);
  if (response == nullptr) return;
  --qp.atomics_pending;
  response->placing = false;
  response->result = done.result;
  response->original = done.original;
  if (trace_.request_placed && done.result == AccessResult::ok) tell_placed(qp.qpn, *response);
  if (done.result == AccessResult::ok) qp.responder.atomic_done(response->psn, done.original);
  settle_responses(qp);
  pump_inbound(qp);
}

// Completes, in order, what has reached memory. Packets to send stay at the head until they get their turn.
void ModelEngine::settle_responses(Qp& qp) {
  while (!qp.responses.empty() && !qp.responses.front().placing) {
    if (qp.responses.front().result != AccessResult::ok) {
      if (!qp.reliable()) return fail_silently(qp);
      fail_placement(qp);
    }
    auto& head = qp.responses.front();
    if (const auto key = std::exchange(head.invalidate, std::nullopt)) {
      head.placing = true;
      return out_.invalidate({issue(qp, Purpose::remote_invalidate, head.sequence), qp.qpn, key->value});
    }
    if (head.cqe) {
      head.cqe->behind_payload = head.placed;
      if (head.cqe->cqe.syndrome != abi::CqeSyndrome::success) ++counters_.resp_cqe_error;
      out_.cqe(std::move(*head.cqe));
      head.cqe.reset();
    }
    if (head.kind != Response::Kind::silent) break;
    qp.responses.pop_front();
  }
  start_atomics(qp);
}

// A key that can't be invalidated is the responder's own error. Its receive completes with it, and the requester hears
// nothing.
void ModelEngine::key_invalidated(Qp& qp, std::uint64_t sequence, AccessResult result) {
  auto* response = qp.response(sequence);
  if (response == nullptr) return;
  response->placing = false;
  if (result == AccessResult::ok) {
    settle_responses(qp);
    return pump_inbound(qp);
  }
  ++counters_.resp_cqe_error;
  out_.cqe(receive_error(qp, response->receive_index, roce::Status::remote_invalid_request_error));
  response->cqe.reset();
  fail(qp);
}

// A receive completes with an error, and once: its message's last packet may be here already, or is still to come.
void ModelEngine::forget_receive(Qp& qp, std::uint16_t index) {
  for (auto& response : qp.responses)
    if (response.receive_index == index) response.cqe.reset();
  const auto& filling = qp.receive_ring.filling();
  if (filling && filling->index == index) qp.receive_ring.filled();
}

// The payload of the head could not be written: its answer becomes a NAK, and what is behind it is flushed.
void ModelEngine::fail_placement(Qp& qp) {
  auto& head = qp.responses.front();
  const bool protection = !head.to_receive && head.result != AccessResult::bus_error;
  head.kind = Response::Kind::nak;
  head.syndrome = protection ? roce::Aeth::kRemoteAccessError : roce::Aeth::kRemoteOperationError;
  head.result = AccessResult::ok;
  head.fatal = true;
  qp.deaf = true;
  const bool had_cqe = head.cqe.has_value();
  head.cqe.reset();
  if (head.to_receive || had_cqe) {
    const auto status = head.to_receive ? roce::Status::local_protection_error : roce::Status::local_access_error;
    forget_receive(qp, head.receive_index);
    head.cqe = receive_error(qp, head.receive_index, status);
  } else {
    head.event = protection ? abi::EventType::qp_access_error : abi::EventType::qp_fatal;
  }
}

// The same of UC and UD, whose requesters hear nothing: a receive completes with the error, and else nothing happened.
void ModelEngine::fail_silently(Qp& qp) {
  const auto head = std::move(qp.responses.front());
  qp.responses.pop_front();
  if (!head.to_receive && !head.cqe) {
    ++counters_.silently_dropped;
    return settle_responses(qp);
  }
  const auto status = head.to_receive ? roce::Status::local_protection_error : roce::Status::local_access_error;
  ++counters_.resp_cqe_error;
  out_.cqe(receive_error(qp, head.receive_index, status));
  forget_receive(qp, head.receive_index);
  fail(qp);
}

bool ModelEngine::answer_waits(const Qp& qp) const {
  if (qp.responses.empty() || qp.answers.size() >= kPacketsAhead) return false;
  const auto& head = qp.responses.front();
  if (head.placing || head.kind == Response::Kind::silent) return false;
  if (head.kind != Response::Kind::read) return true;
  // A packet alone is never too large.
  const auto awaited = qp.answers.awaited();
  return awaited == 0 || awaited + std::min(qp.mtu(), head.range.length) <= limits_.read_ahead;
}

TransmitWork ModelEngine::send_answer(Qp& qp) {
  if (qp.responses.front().kind == Response::Kind::read) return send_read_packet(qp);
  // An ACK answers for those before it: send the last of a run only.
  while (qp.responses.size() > 1 && qp.responses.front().kind == Response::Kind::acknowledge) {
    const auto& next = *std::next(qp.responses.begin());
    if (next.placing || next.invalidate) break;  // its completion is still to come
    if (next.kind != Response::Kind::acknowledge || next.result != AccessResult::ok) break;
    qp.responses.pop_front();
    settle_responses(qp);
  }
  const auto head = std::move(qp.responses.front());
  qp.responses.pop_front();
  const bool atomic = head.kind == Response::Kind::atomic;
  const auto opcode = atomic ? roce::Opcode::atomic_acknowledge : roce::Opcode::acknowledge;
  auto& entry = put_answer(qp, opcode, head.psn, head.syndrome, head.msn);
  if (atomic) {
    --qp.pending(head.duplicate);
    entry.headers.atomic_ack = head.original;
  }
  entry.ready = true;
  emit_ready(qp, qp.answers);
  const TransmitWork work{.unit = 0, .qpn = qp.qpn, .kind = TransmitWork::Kind::acknowledge, .begins = true};
  if (!head.fatal) {
    settle_responses(qp);
    return work;
  }
  if (head.event) out_.event({*head.event, qp.qpn.value});
  fail(qp);
  return work;
}

PacketLane::Entry& ModelEngine::put_answer(Qp& qp, roce::Opcode opcode, roce::Psn psn, std::uint8_t syndrome,
                                           std::uint32_t msn) {
  --credits_;
  auto& entry = qp.answers.add();
  entry.headers.bth.opcode = opcode;
  entry.headers.bth.destination = {qp.context.remote_qpn};
  entry.headers.bth.psn = psn;
  if (roce::info(opcode).has(roce::header::kAeth)) entry.headers.aeth = roce::Aeth{syndrome, msn};
  return entry;
}

TransmitWork ModelEngine::send_read_packet(Qp& qp) {
  auto& read = qp.responses.front();
  const auto mtu = qp.mtu();
  const auto packets = roce::packets_for(read.range.length, mtu);
  const auto index = read.next_packet++;
  const auto offset = index * mtu;
  const auto bytes = std::min(mtu, read.range.length - offset);
  const auto opcode = roce::rc_opcode(roce::Operation::read_response, roce::position_of(index, packets));
  auto& entry = put_answer(qp, opcode, read.psn + index, read.syndrome, read.msn);
  if (bytes == 0) {
    entry.ready = true;
  } else {
    qp.answers.await(entry, bytes);
    out_.gather({issue(qp, Purpose::answer_gather, entry.sequence),
                 qp.qpn,
                 qp.context.pd,
                 abi::access::kRemoteRead,
                 true,
                 {{read.range.rkey.value, read.range.address + offset, bytes}}});
  }
  if (index + 1 == packets) {
    --qp.pending(read.duplicate);
    qp.responses.pop_front();
    settle_responses(qp);
    pump_inbound(qp);
  }
  emit_ready(qp, qp.answers);
  return {.unit = 0, .qpn = qp.qpn, .kind = TransmitWork::Kind::read_response, .begins = index == 0};
}

void ModelEngine::answer_gathered(Qp& qp, std::uint64_t sequence, DmaDone& done) {
  auto* entry = qp.answers.find(sequence);
  if (entry == nullptr) return;
  if (done.result == AccessResult::ok) {
    qp.answers.arrived(*entry, std::move(done.payload));
    return emit_ready(qp, qp.answers);
  }
  // The bytes of a READ could not be had: a NAK in their place, and nothing behind it.
  const auto psn = entry->headers.bth.psn;
  const bool bus = done.result == AccessResult::bus_error;
  credits_ += qp.answers.drop_from(sequence);
  const auto syndrome = bus ? roce::Aeth::kRemoteOperationError : roce::Aeth::kRemoteAccessError;
  put_answer(qp, roce::Opcode::acknowledge, psn, syndrome, qp.responder.msn()).ready = true;
  emit_ready(qp, qp.answers);
  if (qp.state == roce::QpState::error) return;
  out_.event({bus ? abi::EventType::qp_fatal : abi::EventType::qp_access_error, qp.qpn.value});
  fail(qp);
}

}  // namespace rnicsim::nic
