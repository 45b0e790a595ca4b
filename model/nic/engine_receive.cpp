// The responder's side of the model engine: request packets in, payload placed, receives taken. What is owed for them
// is engine_answers.cpp's.
#include <algorithm>

#include "model/nic/engine_cqes.h"
#include "model/nic/model_engine.h"

namespace rnicsim::nic {
namespace {

using Kind = roce::Verdict::Kind;

// A SEND of one packet, no longer than the QP allows.
bool comes_in_cqe(const Qp& qp, const roce::Verdict& verdict, std::uint32_t bytes) {
  return verdict.to_receive_wqe && verdict.begins_receive && verdict.completes_receive &&
         bytes <= qp.context.inline_receive;
}

// A datagram; only an IPv6 header fills its GRH from the first byte on.
bool came_by_ipv4(const PacketIn& packet) {
  return packet.grh.size() != 0 && std::to_integer<unsigned>(packet.grh.bytes().front()) >> 4 != 6;
}

// A datagram with its GRH, as it is to lie in memory.
Payload behind(const Payload& grh, const Payload& payload) {
  Payload both(grh.size() + payload.size());
  std::ranges::copy(grh.bytes(), both.writable().begin());
  std::ranges::copy(payload.bytes(), both.writable().begin() + grh.size());
  return both;
}

}  // namespace

void ModelEngine::take_request(Qp& qp, PacketIn&& packet) {
  const bool connects = qp.transport != roce::Transport::ud && qp.state == roce::QpState::rtr;
  if (!std::exchange(qp.established, true) && connects)
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
    if (qp.has_srq()) give_back_held(qp);
  }
}

void ModelEngine::fill_offer(Qp& qp, const roce::OpcodeInfo& row) {
  qp.offer.rd_atomic_pending = qp.rd_atomic_pending;
  qp.offer.duplicates_pending = qp.duplicates_pending;
  const auto& filling = qp.receive_ring.filling();
  if (row.operation == roce::Operation::send && !row.begins()) {
    qp.offer.receive_bytes = filling ? filling->bytes : 0;
  } else if (filling && qp.transport == roce::Transport::uc) {
    // Its message was lost.
    qp.offer.receive = roce::Offer::Receive::available;
    qp.offer.receive_bytes = filling->bytes;
  } else if (qp.receive_ring.held() != 0) {
    qp.offer.receive = roce::Offer::Receive::available;
    qp.offer.receive_bytes = qp.receive_ring[0].bytes;
  }
}

// False: the packet stays at the head until its question is answered.
bool ModelEngine::act(Qp& qp, PacketIn& packet, const roce::Verdict& verdict) {
  switch (verdict.kind) {
    case Kind::drop:
      count_drop(verdict);
      break;
    case Kind::wants_receive:
      qp.inbound_waits = true;
      qp.receive_ring.want();
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
  if (verdict.begins_receive && qp.has_receive() && qp.receive_ring.low()) look_for_receives(qp);
  return true;
}

void ModelEngine::count_drop(const roce::Verdict& verdict) {
  if (verdict.duplicate) return void(++counters_.duplicate_request);
  switch (verdict.cause) {
    case roce::DropCause::out_of_sequence: return void(++counters_.out_of_sequence);
    case roce::DropCause::no_receive: return void(++counters_.out_of_buffer);
    case roce::DropCause::bad_qkey: return void(++counters_.bad_qkey);
    case roce::DropCause::unfit: return void(++counters_.silently_dropped);
  }
}

void ModelEngine::place(Qp& qp, PacketIn& packet, const roce::Verdict& verdict) {
  if (verdict.begins_receive) qp.receive_ring.fill_next();
  Response response{.sequence = qp.next_response++, .psn = verdict.psn, .msn = verdict.msn,
                    .to_receive = verdict.to_receive_wqe};
  if (verdict.acknowledge) response.kind = Response::Kind::acknowledge;
  if (qp.transport == roce::Transport::ud) packet.payload = behind(packet.grh, packet.payload);
  const auto bytes = packet.payload.size();
  const auto& filling = qp.receive_ring.filling();
  if (filling) response.receive_index = filling->index;
  const bool in_cqe = comes_in_cqe(qp, verdict, bytes);
  if (bytes != 0 && !in_cqe) {
    response.placing = true;
    Scatter scatter{.tag = issue(qp, Purpose::receive_scatter, response.sequence),
                    .qpn = qp.qpn,
                    .pd = verdict.to_receive_wqe ? qp.receive_pd() : std::uint32_t(qp.context.pd),
                    .access = abi::access::kLocalWrite,
                    .remote = !verdict.to_receive_wqe,
                    .regions = {},
                    .payload = std::move(packet.payload),
                    .more = !verdict.completes};
    if (verdict.to_receive_wqe) {
      scatter.regions = slice(filling->regions, verdict.offset, bytes);
    } else {
      scatter.access = verdict.access;
      scatter.regions.push_back({verdict.range.rkey.value, verdict.range.address, bytes});
    }
    complete_receive(qp, response, verdict, packet);
    qp.responses.push_back(std::move(response));
    return out_.scatter(std::move(scatter));
  }
  complete_receive(qp, response, verdict, packet);
  if (in_cqe) response.cqe->payload = std::move(packet.payload);
  if (trace_.request_placed) tell_placed(qp.qpn, response);
  qp.responses.push_back(std::move(response));
}

void ModelEngine::tell_placed(Qpn qpn, const Response& response) const {
  std::optional<std::uint16_t> receive;
  if (response.cqe) receive = response.receive_index;
  trace_.request_placed({qpn, response.psn, receive});
}

void ModelEngine::complete_receive(Qp& qp, Response& response, const roce::Verdict& verdict, const PacketIn& last) {
  if (!verdict.completes_receive) return;
  response.cqe = receive_cqe(qp.qpn, {qp.context.receive_cqn}, response.receive_index, last.headers,
                             verdict.message_bytes);
  if (came_by_ipv4(last)) response.cqe->cqe.flags |= abi::Cqe::kIpv4;
  response.invalidate = verdict.invalidate;
  qp.receive_ring.filled();
}

void ModelEngine::reject(Qp& qp, const roce::Verdict& verdict) {
  if (verdict.syndrome == roce::Aeth::kSequenceError) ++counters_.out_of_sequence;
  if (verdict.syndrome == roce::Aeth::kInvalidRequest) ++counters_.resp_invalid_request;
  if (verdict.syndrome == roce::Aeth::kRemoteAccessError) ++counters_.resp_remote_access_errors;
  if ((verdict.syndrome & roce::Aeth::kClassMask) == roce::Aeth::kRnrNak) ++counters_.out_of_buffer;
  Response response{.kind = Response::Kind::nak, .sequence = qp.next_response++, .psn = verdict.psn,
                    .syndrome = verdict.syndrome, .msn = verdict.msn, .fatal = verdict.fatal};
  if (verdict.begins_receive) qp.receive_ring.fill_next();
  if (const auto& filling = qp.receive_ring.filling(); filling && verdict.receive_status) {
    response.receive_index = filling->index;
    response.cqe = receive_error(qp, filling->index, *verdict.receive_status);
    qp.receive_ring.filled();
  }
  if (verdict.access_event) response.event = abi::EventType::qp_access_error;
  if (verdict.request_event) response.event = abi::EventType::qp_request_error;
  qp.deaf |= verdict.fatal;
  qp.responses.push_back(std::move(response));
}

CqeWrite ModelEngine::receive_error(const Qp& qp, std::uint16_t index, roce::Status status) const {
  return receive_error_cqe(qp.qpn, {qp.context.receive_cqn}, index, status);
}

}  // namespace rnicsim::nic
