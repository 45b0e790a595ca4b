// The responder's side of the model engine: request packets in, payload placed, receives taken. What is owed for them is
// engine_answers.cpp's.
#include <algorithm>

#include "model/nic/model_engine.h"

namespace rnicsim::nic {
namespace {

using Kind = roce::Verdict::Kind;

abi::CqeOpcode receive_opcode(const roce::Verdict& verdict) {
  if (!verdict.is_send) return abi::CqeOpcode::receive_write_with_imm;
  if (verdict.invalidate) return abi::CqeOpcode::receive_send_with_inv;
  return verdict.immediate ? abi::CqeOpcode::receive_send_with_imm : abi::CqeOpcode::receive_send;
}

// A SEND of one packet, no longer than the QP allows.
bool comes_in_cqe(const Qp& qp, const roce::Verdict& verdict, std::uint32_t bytes) {
  return verdict.to_receive_wqe && verdict.begins_receive && verdict.completes_receive &&
         bytes <= qp.context.inline_receive;
}

}  // namespace

void ModelEngine::take_request(Qp& qp, PacketIn&& packet) {
  if (!std::exchange(qp.established, true) && qp.state == roce::QpState::rtr)
    out_.event({abi::EventType::communication_established, qp.qpn.value});
  trace_.request_taken({qp.qpn, packet.headers.bth.psn, packet.frame});
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
      trace_.request_placed({qp.qpn, packet.headers.bth.psn, {}});
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
    case Kind::replay:
      trace_.request_placed({qp.qpn, packet.headers.bth.psn, {}});
      owe_atomic(qp, verdict);
      break;
    case Kind::atomic:
      owe_atomic(qp, verdict);
      break;
  }
  settle_responses(qp);
  // Behind the payload on the way to memory.
  if (verdict.begins_receive) replenish_receives(qp);
  return true;
}

void ModelEngine::place(Qp& qp, PacketIn& packet, const roce::Verdict& verdict) {
  if (verdict.begins_receive) take_receive(qp);
  Response response{.sequence = qp.next_response++, .psn = verdict.psn, .msn = verdict.msn,
                    .to_receive = verdict.to_receive_wqe};
  if (verdict.acknowledge) response.kind = Response::Kind::acknowledge;
  const auto bytes = packet.payload.size();
  if (qp.receiving) response.receive_index = qp.receiving->index;
  const bool in_cqe = comes_in_cqe(qp, verdict, bytes);
  if (bytes != 0 && !in_cqe) {
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
  if (in_cqe) response.cqe->payload = std::move(packet.payload);
  if (trace_.request_placed) tell_placed(qp.qpn, response);
  qp.responses.push_back(std::move(response));
}

void ModelEngine::tell_placed(Qpn qpn, const Response& response) const {
  std::optional<std::uint16_t> receive;
  if (response.cqe) receive = response.receive_index;
  trace_.request_placed({qpn, response.psn, receive});
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

}  // namespace rnicsim::nic
