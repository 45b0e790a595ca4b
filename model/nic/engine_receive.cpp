// The responder's side of the model engine: request packets in, payload placed, answers out, receive completions.
#include <algorithm>

#include "model/nic/model_engine.h"

namespace rnicsim::nic {
namespace {

using Kind = roce::Verdict::Kind;

constexpr std::size_t kPacketsAhead = 32;  // packets of READ responses that wait for their payload

abi::CqeOpcode receive_opcode(const roce::Verdict& verdict) {
  if (!verdict.is_send) return abi::CqeOpcode::receive_write_with_imm;
  if (verdict.invalidate) return abi::CqeOpcode::receive_send_with_inv;
  return verdict.immediate ? abi::CqeOpcode::receive_send_with_imm : abi::CqeOpcode::receive_send;
}

}  // namespace

void ModelEngine::take_request(Qp& qp, PacketIn&& packet) {
  if (!std::exchange(qp.established, true) && qp.state == roce::QpState::rtr)
    out_.event({abi::EventType::communication_established, qp.qpn.value});
  qp.inbound.push_back(std::move(packet));
  pump_inbound(qp);
}

void ModelEngine::pump_inbound(Qp& qp) {
  while (!qp.inbound.empty() && !qp.inbound_waits && qp.responds()) {
    auto& packet = qp.inbound.front();
    // An atomic is ordered before the writes that follow it.
    if (qp.atomics_pending != 0 && !packet.payload.empty()) return;
    fill_offer(qp, roce::info(packet.headers.bth.opcode));
    const auto verdict = qp.responder.receive(packet.headers, packet.payload.size(), qp.offer);
    if (!act(qp, packet, verdict)) return;
    qp.inbound.pop_front();
    qp.offer = {};
  }
}

void ModelEngine::fill_offer(Qp& qp, const roce::OpcodeInfo& row) {
  qp.offer.rd_atomic_pending = qp.rd_atomic_pending;
  qp.offer.duplicates_pending = qp.duplicates_pending;
  if (row.operation == roce::Operation::send && !row.begins()) {
    qp.offer.receive_bytes = qp.receiving ? qp.receiving->bytes : 0;
  } else if (!qp.receives.empty()) {
    qp.offer.receive = roce::Offer::Receive::available;
    qp.offer.receive_bytes = qp.receives.front().bytes;
  }
}

// False: the packet stays at the head until its question is answered.
bool ModelEngine::act(Qp& qp, PacketIn& packet, const roce::Verdict& verdict) {
  switch (verdict.kind) {
    case Kind::drop:
      ++(verdict.duplicate ? counters_.duplicate_request : counters_.out_of_sequence);
      break;
    case Kind::wants_receive:
      qp.inbound_waits = true;
      qp.look_again = qp.receive_fetching;
      look_for_receives(qp);
      return false;
    case Kind::wants_access:
      qp.inbound_waits = true;
      out_.access_check({issue(qp, Purpose::access_check), qp.qpn, qp.context.pd, verdict.access, true,
                         {verdict.range.rkey.value, verdict.range.address, verdict.range.length}});
      return false;
    case Kind::acknowledge:
      ++counters_.duplicate_request;
      qp.responses.push_back({.kind = Response::Kind::acknowledge, .sequence = qp.next_response++, .psn = verdict.psn,
                              .msn = verdict.msn});
      break;
    case Kind::reject:
      reject(qp, verdict);
      break;
    case Kind::place:
      place(qp, packet, verdict);
      break;
    case Kind::read:
      owe_read(qp, verdict);
      break;
    case Kind::atomic:
    case Kind::replay:
      owe_atomic(qp, verdict);
      break;
  }
  settle_responses(qp);
  return true;
}

void ModelEngine::place(Qp& qp, PacketIn& packet, const roce::Verdict& verdict) {
  if (verdict.begins_receive) take_receive(qp);
  Response response{.sequence = qp.next_response++, .psn = verdict.psn, .msn = verdict.msn,
                    .to_receive = verdict.to_receive_wqe};
  if (verdict.acknowledge) response.kind = Response::Kind::acknowledge;
  const auto bytes = packet.payload.size();
  if (qp.receiving) response.receive_index = qp.receiving->index;
  if (bytes != 0) {
    response.placing = true;
    Scatter scatter{.tag = issue(qp, Purpose::receive_scatter, response.sequence), .qpn = qp.qpn, .pd = qp.context.pd,
                    .access = abi::access::kLocalWrite, .remote = !verdict.to_receive_wqe, .regions = {},
                    .payload = std::move(packet.payload), .more = !verdict.completes};
    if (verdict.to_receive_wqe) {
      scatter.regions = slice(qp.receiving->regions, verdict.offset, bytes);
    } else {
      scatter.access = verdict.access;
      scatter.regions.push_back({verdict.range.rkey.value, verdict.range.address, bytes});
    }
    complete_receive(qp, response, verdict);
    qp.responses.push_back(std::move(response));
    return out_.scatter(std::move(scatter));
  }
  complete_receive(qp, response, verdict);
  qp.responses.push_back(std::move(response));
}

void ModelEngine::complete_receive(Qp& qp, Response& response, const roce::Verdict& verdict) {
  if (!verdict.completes_receive) return;
  response.cqe = receive_cqe(qp, qp.receiving->index, receive_opcode(verdict));
  response.cqe->cqe.byte_count = verdict.message_bytes;
  if (verdict.immediate) response.cqe->cqe.immediate = *verdict.immediate;
  if (verdict.invalidate) response.cqe->cqe.immediate = verdict.invalidate->value;
  response.invalidate = verdict.invalidate;
  response.cqe->solicited = verdict.solicited;
  qp.receiving.reset();
}

void ModelEngine::reject(Qp& qp, const roce::Verdict& verdict) {
  if (verdict.syndrome == roce::Aeth::kSequenceError) ++counters_.out_of_sequence;
  if (verdict.syndrome == roce::Aeth::kInvalidRequest) ++counters_.resp_invalid_request;
  if (verdict.syndrome == roce::Aeth::kRemoteAccessError) ++counters_.resp_remote_access_errors;
  if ((verdict.syndrome & roce::Aeth::kClassMask) == roce::Aeth::kRnrNak) ++counters_.out_of_buffer;
  Response response{.kind = Response::Kind::nak, .sequence = qp.next_response++, .psn = verdict.psn,
                    .syndrome = verdict.syndrome, .msn = verdict.msn, .fatal = verdict.fatal};
  if (verdict.begins_receive) take_receive(qp);
  if (verdict.receive_status && qp.receiving) {
    response.cqe = receive_error(qp, qp.receiving->index, *verdict.receive_status);
    qp.receiving.reset();
  }
  if (verdict.access_event) response.event = abi::EventType::qp_access_error;
  if (verdict.request_event) response.event = abi::EventType::qp_request_error;
  qp.deaf |= verdict.fatal;
  qp.responses.push_back(std::move(response));
}

// A requester that went back wants its answers in the order of their PSNs: that of a duplicate goes before what is owed
// to later requests, and one that is owed already is not owed twice.
void ModelEngine::owe_again(Qp& qp, Response response) {
  ++counters_.duplicate_request;
  for (std::size_t i = 0; i < qp.responses.size(); ++i) {
    const auto& owed = qp.responses[i];
    const bool has_data = owed.kind == Response::Kind::read || owed.kind == Response::Kind::atomic;
    const auto packets = owed.kind == Response::Kind::read ? roce::packets_for(owed.range.length, qp.mtu()) : 1;
    const bool covered = !before(response.psn, owed.psn + owed.next_packet) && before(response.psn, owed.psn + packets);
    if (has_data && covered) return;
  }
  ++qp.duplicates_pending;
  qp.responses.push_back(std::move(response));
  for (auto at = qp.responses.size() - 1; at > 0; --at) {
    auto& earlier = qp.responses[at - 1];
    if (!before(qp.responses[at].psn, earlier.psn)) break;
    std::swap(earlier, qp.responses[at]);
  }
}

void ModelEngine::owe_read(Qp& qp, const roce::Verdict& verdict) {
  Response response{.kind = Response::Kind::read, .sequence = qp.next_response++, .psn = verdict.psn, .msn = verdict.msn,
                    .duplicate = verdict.duplicate, .range = verdict.range};
  if (verdict.duplicate) return owe_again(qp, std::move(response));
  ++qp.rd_atomic_pending;
  qp.responses.push_back(std::move(response));
}

void ModelEngine::owe_atomic(Qp& qp, const roce::Verdict& verdict) {
  Response response{.kind = Response::Kind::atomic, .sequence = qp.next_response++, .psn = verdict.psn, .msn = verdict.msn,
                    .duplicate = verdict.duplicate, .is_swap = verdict.is_swap, .original = verdict.original};
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
  for (std::size_t i = 0; i < qp.responses.size(); ++i) {
    auto& response = qp.responses[i];
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
  if (done.result == AccessResult::ok) qp.responder.atomic_done(response->psn, done.original);
  settle_responses(qp);
  pump_inbound(qp);
}

CqeWrite ModelEngine::receive_cqe(const Qp& qp, std::uint16_t index, abi::CqeOpcode opcode) const {
  CqeWrite write{.cqn = {qp.context.receive_cqn}, .cqe = {}, .solicited = false};
  write.cqe.qpn = qp.qpn.value;
  write.cqe.wqe_counter = index;
  write.cqe.opcode_owner = static_cast<std::uint8_t>(static_cast<unsigned>(opcode) << 4);
  return write;
}

CqeWrite ModelEngine::receive_error(const Qp& qp, std::uint16_t index, roce::Status status) const {
  auto write = receive_cqe(qp, index, abi::CqeOpcode::responder_error);
  write.cqe.syndrome = static_cast<abi::CqeSyndrome>(status);
  write.solicited = true;
  return write;
}

// Completes, in order, what has reached memory. Packets to send stay at the head until they get their turn.
void ModelEngine::settle_responses(Qp& qp) {
  while (!qp.responses.empty() && !qp.responses.front().placing) {
    if (qp.responses.front().result != AccessResult::ok) fail_placement(qp);
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

// IBTA vol 1, 9.9.3: a key that can't be invalidated is the responder's own error. Its receive completes with it, and the
// requester hears nothing.
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
    head.cqe = receive_error(qp, head.receive_index, status);
    if (qp.receiving && qp.receiving->index == head.receive_index) qp.receiving.reset();
  } else {
    head.event = protection ? abi::EventType::qp_access_error : abi::EventType::qp_fatal;
  }
}

bool ModelEngine::answer_waits(const Qp& qp) const {
  if (qp.responses.empty() || qp.answers.entries.size() >= kPacketsAhead) return false;
  const auto& head = qp.responses.front();
  return !head.placing && head.kind != Response::Kind::silent;
}

void ModelEngine::send_answer(Qp& qp) {
  if (qp.responses.front().kind == Response::Kind::read) return send_read_packet(qp);
  // An ACK answers for those before it: send the last of a run only.
  while (qp.responses.size() > 1 && qp.responses.front().kind == Response::Kind::acknowledge) {
    const auto& next = qp.responses[1];
    if (next.placing || next.kind != Response::Kind::acknowledge || next.result != AccessResult::ok) break;
    qp.responses.pop_front();
    settle_responses(qp);
  }
  const auto head = std::move(qp.responses.front());
  qp.responses.pop_front();
  const bool atomic = head.kind == Response::Kind::atomic;
  put_answer(qp, atomic ? roce::Opcode::atomic_acknowledge : roce::Opcode::acknowledge, head.psn, head.syndrome, head.msn);
  if (atomic) {
    --qp.pending(head.duplicate);
    qp.answers.entries.back().headers.atomic_ack = head.original;
  }
  qp.answers.entries.back().ready = true;
  emit_ready(qp, qp.answers);
  if (!head.fatal) return settle_responses(qp);
  if (head.event) out_.event({*head.event, qp.qpn.value});
  fail(qp);
}

void ModelEngine::put_answer(Qp& qp, roce::Opcode opcode, roce::Psn psn, std::uint8_t syndrome, std::uint32_t msn) {
  --credits_;
  auto& entry = qp.answers.entries.push_back({});
  entry.sequence = qp.answers.next_sequence++;
  entry.headers.bth.opcode = opcode;
  entry.headers.bth.destination = {qp.context.remote_qpn};
  entry.headers.bth.psn = psn;
  if (roce::info(opcode).has(roce::header::kAeth)) entry.headers.aeth = roce::Aeth{syndrome, msn};
}

void ModelEngine::send_read_packet(Qp& qp) {
  auto& read = qp.responses.front();
  const auto mtu = qp.mtu();
  const auto packets = roce::packets_for(read.range.length, mtu);
  const auto index = read.next_packet++;
  const auto offset = index * mtu;
  const auto bytes = std::min(mtu, read.range.length - offset);
  const auto opcode = roce::rc_opcode(roce::Operation::read_response, roce::position_of(index, packets));
  put_answer(qp, opcode, read.psn + index, read.syndrome, read.msn);
  auto& entry = qp.answers.entries.back();
  if (bytes == 0) {
    entry.ready = true;
  } else {
    out_.gather({issue(qp, Purpose::answer_gather, entry.sequence), qp.qpn, qp.context.pd, abi::access::kRemoteRead, true,
                 {{read.range.rkey.value, read.range.address + offset, bytes}}});
  }
  if (index + 1 == packets) {
    --qp.pending(read.duplicate);
    qp.responses.pop_front();
    settle_responses(qp);
    pump_inbound(qp);
  }
  emit_ready(qp, qp.answers);
}

void ModelEngine::answer_gathered(Qp& qp, std::uint64_t sequence, DmaDone& done) {
  auto* entry = qp.answers.find(sequence);
  if (entry == nullptr) return;
  if (done.result == AccessResult::ok) {
    entry->payload = std::move(done.payload);
    entry->ready = true;
    return emit_ready(qp, qp.answers);
  }
  // The bytes of a READ could not be had: a NAK in their place, and nothing behind it.
  const auto psn = entry->headers.bth.psn;
  const bool bus = done.result == AccessResult::bus_error;
  drop_lane_from(qp.answers, sequence);
  put_answer(qp, roce::Opcode::acknowledge, psn,
             bus ? roce::Aeth::kRemoteOperationError : roce::Aeth::kRemoteAccessError, qp.responder.msn());
  qp.answers.entries.back().ready = true;
  emit_ready(qp, qp.answers);
  if (qp.state == roce::QpState::error) return;
  out_.event({bus ? abi::EventType::qp_fatal : abi::EventType::qp_access_error, qp.qpn.value});
  fail(qp);
}

}  // namespace rnicsim::nic
