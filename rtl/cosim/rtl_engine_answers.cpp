// The receive side: requests to be judged, payload placed, receives completed, answers.
#include <algorithm>
#include <utility>

#include "model/nic/engine_cqes.h"
#include "rtl/cosim/rtl_engine.h"

namespace rnicsim::rtl {
namespace {

constexpr std::size_t kPacketsAhead = 32;  // packets of READ responses that wait for their payload

// As far as the RTL counts: more than any MTU is more.
std::uint16_t bytes_of(const nic::PacketIn& packet) {
  return static_cast<std::uint16_t>(std::min(packet.payload.size(), 0xffffu));
}

bool is_read_response(const AnswerRecord& record) {
  return roce::info(static_cast<roce::Opcode>(record.opcode)).operation == roce::Operation::read_response;
}

}  // namespace

void RtlEngine::take_packet(nic::PacketIn& packet) {
  auto* qp = find(packet.headers.bth.destination);
  if (qp == nullptr) return void(++counters_.unknown_qp);
  const auto& row = roce::info(packet.headers.bth.opcode);
  const bool welcome =
      row.transport == nic::transport_of(qp->context) && (row.response() ? qp->sends() : qp->responds());
  if (!welcome) return void(++counters_.wrong_state);
  if (!nic::came_by_path(packet, qp->context)) return void(++counters_.wrong_path);
  if (row.response()) {
    Response response{.slot = qp->slot, .opcode = static_cast<std::uint8_t>(row.opcode),
                      .psn = packet.headers.bth.psn.value(),
                      .syndrome = packet.headers.aeth ? packet.headers.aeth->syndrome : roce::Aeth::kNoCredits,
                      .bytes = bytes_of(packet)};
    responses_.push_back({std::move(packet), qp->qpn, qp->epoch});
    return feed(response);
  }
  if (!std::exchange(qp->established, true) && qp->state == roce::QpState::rtr)
    out_.event({abi::EventType::communication_established, qp->qpn.value});
  trace_.request_taken({qp->qpn, packet.headers.bth.psn, packet.frame});
  qp->inbound.push_back(std::move(packet));
  pump_inbound(*qp);
}

void RtlEngine::pump_inbound(RtlQp& qp) {
  if (qp.asked || qp.waits || qp.inbound.empty() || !qp.responds()) return;
  qp.asked = true;
  feed(request_of(qp));
}

Request RtlEngine::request_of(const RtlQp& qp) const {
  const auto& packet = qp.inbound.front();
  const auto& headers = packet.headers;
  const auto& row = roce::info(headers.bth.opcode);
  Request request{.slot = qp.slot, .opcode = static_cast<std::uint8_t>(row.opcode), .psn = headers.bth.psn.value(),
                  .ack_request = headers.bth.ack_request,
                  .bytes = bytes_of(packet),
                  .access_known = qp.access_granted.has_value(), .access_granted = qp.access_granted.value_or(false)};
  if (headers.reth) {
    request.address = headers.reth->address;
    request.rkey = headers.reth->rkey.value;
    request.length = headers.reth->length;
  }
  if (headers.atomic) {
    request.address = headers.atomic->address;
    request.rkey = headers.atomic->rkey.value;
  }
  const auto& filling = qp.receive_ring.filling();
  if (row.operation == roce::Operation::send && !row.begins()) {
    request.receive_bytes = filling ? filling->bytes : 0;
  } else if (qp.receive_ring.held() != 0) {
    request.receive_known = request.receive_available = true;
    request.receive_bytes = qp.receive_ring[0].bytes;
  } else {
    request.receive_known = qp.no_receive;
  }
  return request;
}

void RtlEngine::take(const AnswerRecord& record) {
  auto& slot = slots_[record.slot];
  if (record.op == AnswerOp::control) {
    const auto kind = rtl_.input<AnswerControl>().kind;
    if (kind == Control::reset || kind == Control::error) --slot.answer_void;
    if (kind == Control::query) told(asked_of_answers_, &Snapshot::answer, record);
    return;
  }
  auto* qp = slot.answer_void == 0 ? of_slot(record.slot) : nullptr;
  if (qp == nullptr) return;
  switch (record.op) {
    case AnswerOp::request: judged(*qp, record); break;
    case AnswerOp::packet:
      if (qp->answers_void && !record.fatal) break;
      qp->answer_packets.push_back(AnswerRecord{record});
      break;
    case AnswerOp::complete: complete_receive(*qp, record); break;
    case AnswerOp::failed: placement_failed(*qp, record); break;
    default: break;
  }
  if (record.op != AnswerOp::request && std::exchange(qp->waits, false)) pump_inbound(*qp);
  schedule(*qp);
  give_up(*qp);
}

void RtlEngine::judged(RtlQp& qp, const AnswerRecord& record) {
  auto& packet = qp.inbound.front();
  qp.asked = false;
  qp.psn_of[record.owed] = packet.headers.bth.psn;
  switch (record.verdict) {
    case Verdict::busy: qp.waits = true; return;
    case Verdict::want_receive:
      qp.asked = qp.looks_for_receive = true;
      qp.receive_ring.want();
      return look_for_receives(qp);
    case Verdict::want_access: {
      qp.asked = true;
      const auto operation = roce::info(packet.headers.bth.opcode).operation;
      const auto access = operation == roce::Operation::write  ? roce::remote_access::kWrite
                          : operation == roce::Operation::read ? roce::remote_access::kRead
                                                               : roce::remote_access::kAtomic;
      return out_.access_check({issue(qp, Purpose::access_check), qp.qpn, qp.context.pd, access, true,
                                {record.rkey, record.address, record.length}});
    }
    case Verdict::drop: ++(record.duplicate ? counters_.duplicate_request : counters_.out_of_sequence); break;
    case Verdict::acknowledge:
    case Verdict::replay:
      ++counters_.duplicate_request;
      trace_.request_placed({qp.qpn, packet.headers.bth.psn, {}});
      break;
    case Verdict::read:
      if (record.duplicate) ++counters_.duplicate_request;
      break;
    case Verdict::reject: reject(qp, record); break;
    case Verdict::place: place(qp, packet, record); break;
    case Verdict::atomic:
      out_.atomic({issue(qp, Purpose::atomic, std::uint64_t{record.saved} * kOwed + record.owed), qp.qpn, qp.context.pd,
                   packet.headers.bth.opcode == roce::Opcode::compare_swap, *packet.headers.atomic});
      break;
  }
  qp.inbound.pop_front();
  qp.access_granted.reset();
  qp.no_receive = false;
  // Behind the payload on the way to memory.
  if (record.begins_receive && qp.receive_ring.low()) look_for_receives(qp);
  pump_inbound(qp);
}

void RtlEngine::place(RtlQp& qp, nic::PacketIn& packet, const AnswerRecord& record) {
  auto& ring = qp.receive_ring;
  if (record.begins_receive) ring.fill_next();
  const auto& filling = ring.filling();
  if (filling) qp.receive_of[record.owed] = filling->index;
  qp.placed.reset(record.owed);
  const auto bytes = packet.payload.size();
  const bool whole = record.begins_receive && record.completes_receive;
  const bool in_cqe = record.to_receive && whole && bytes <= qp.context.inline_receive;
  nic::Scatter scatter{.tag = 0, .qpn = qp.qpn, .pd = qp.context.pd, .access = abi::access::kLocalWrite,
                       .remote = !record.to_receive, .regions = {}, .payload = {}, .more = !record.completes};
  if (record.to_receive) {
    scatter.regions = nic::slice(filling->regions, record.offset, bytes);
  } else {
    scatter.access = roce::remote_access::kWrite;
    scatter.regions.push_back({record.rkey, record.address, static_cast<std::uint32_t>(bytes)});
  }
  if (record.completes_receive) {
    auto& cqe = qp.cqes.push_back({nic::receive_cqe(qp.qpn, {qp.context.receive_cqn}, filling->index, packet.headers,
                                                    record.message_bytes),
                                   filling->index, record.owed});
    if (in_cqe) cqe.write.payload = packet.payload;
    ring.filled();
  }
  if (bytes == 0 || in_cqe) {
    if (trace_.request_placed) tell_placed(qp, record.owed);
    if (bytes != 0) feed(AnswerEvent{.slot = qp.slot, .kind = AnswerEvent::Kind::placed, .owed = record.owed});
    return;
  }
  scatter.tag = issue(qp, Purpose::receive_scatter, record.owed);
  scatter.payload = std::move(packet.payload);
  out_.scatter(std::move(scatter));
}

void RtlEngine::tell_placed(RtlQp& qp, std::uint8_t owed) {
  std::optional<std::uint16_t> receive;
  for (std::size_t i = 0; i < qp.cqes.size(); ++i)
    if (qp.cqes[i].owed == owed) receive = qp.cqes[i].receive_index;
  trace_.request_placed({qp.qpn, qp.psn_of[owed], receive});
}

void RtlEngine::reject(RtlQp& qp, const AnswerRecord& record) {
  if (record.syndrome == roce::Aeth::kSequenceError) ++counters_.out_of_sequence;
  if (record.syndrome == roce::Aeth::kInvalidRequest) ++counters_.resp_invalid_request;
  if (record.syndrome == roce::Aeth::kRemoteAccessError) ++counters_.resp_remote_access_errors;
  if ((record.syndrome & roce::Aeth::kClassMask) == roce::Aeth::kRnrNak) ++counters_.out_of_buffer;
  auto& ring = qp.receive_ring;
  if (record.begins_receive) ring.fill_next();
  if (record.receive_status != 0 && ring.filling()) {
    const auto index = ring.filling()->index;
    qp.cqes.push_back({nic::receive_error_cqe(qp.qpn, {qp.context.receive_cqn}, index,
                                              static_cast<roce::Status>(record.receive_status)),
                       index, record.owed});
    ring.filled();
  }
  if (record.access_event) qp.fatal_event = abi::EventType::qp_access_error;
  if (record.request_event) qp.fatal_event = abi::EventType::qp_request_error;
  qp.deaf |= record.fatal;
}

void RtlEngine::complete_receive(RtlQp& qp, const AnswerRecord& record) {
  if (qp.cqes.empty() || qp.cqes.front().owed != record.owed) return;
  auto write = std::move(qp.cqes.front().write);
  qp.cqes.pop_front();
  write.behind_payload = qp.placed.test(record.owed);
  if (write.cqe.syndrome != abi::CqeSyndrome::success) ++counters_.resp_cqe_error;
  out_.cqe(std::move(write));
}

// The payload of the oldest answer could not be written: it becomes a NAK, and what is behind it is flushed.
void RtlEngine::placement_failed(RtlQp& qp, const AnswerRecord& record) {
  qp.deaf = true;
  if (!record.to_receive && !record.had_cqe) {
    qp.fatal_event = record.access_event ? abi::EventType::qp_access_error : abi::EventType::qp_fatal;
    return;
  }
  const auto index = qp.receive_of[record.owed];
  if (record.had_cqe && !qp.cqes.empty()) qp.cqes.pop_front();
  if (qp.receive_ring.filling() && qp.receive_ring.filling()->index == index) qp.receive_ring.filled();
  ++counters_.resp_cqe_error;
  out_.cqe(nic::receive_error_cqe(qp.qpn, {qp.context.receive_cqn}, index,
                                  record.to_receive ? roce::Status::local_protection_error
                                                    : roce::Status::local_access_error));
}

bool RtlEngine::answer_waits(const RtlQp& qp) const {
  if (qp.answer_packets.empty() || qp.answers.size() >= kPacketsAhead) return false;
  const auto& next = qp.answer_packets.front();
  if (!is_read_response(next)) return true;
  // A packet alone is never too large.
  return qp.answers.awaited() == 0 || qp.answers.awaited() + next.length <= limits_.read_ahead;
}

nic::TransmitWork RtlEngine::send_answer(RtlQp& qp) {
  const auto record = qp.answer_packets.front();
  qp.answer_packets.pop_front();
  const auto& row = roce::info(static_cast<roce::Opcode>(record.opcode));
  auto& entry = qp.answers.add();
  entry.headers.bth.opcode = row.opcode;
  entry.headers.bth.destination = {record.destination};
  entry.headers.bth.psn = roce::Psn(record.psn);
  if (row.has(roce::header::kAeth)) entry.headers.aeth = roce::Aeth{record.syndrome, record.msn};
  if (row.has(roce::header::kAtomicAck)) entry.headers.atomic_ack = record.original;
  const bool is_read = is_read_response(record);
  if (!is_read || record.length == 0) {
    entry.ready = true;
  } else {
    qp.answers.await(entry, record.length);
    out_.gather({issue(qp, Purpose::answer_gather, entry.sequence),
                 qp.qpn,
                 qp.context.pd,
                 abi::access::kRemoteRead,
                 true,
                 {{record.rkey, record.address, record.length}}});
  }
  emit_ready(qp, false);
  if (record.fatal) {
    if (qp.fatal_event) out_.event({*qp.fatal_event, qp.qpn.value});
    fail(qp);
  }
  const auto kind = is_read ? nic::TransmitWork::Kind::read_response : nic::TransmitWork::Kind::acknowledge;
  return {.unit = 0, .qpn = qp.qpn, .kind = kind, .begins = !is_read || row.begins()};
}

void RtlEngine::answer_gathered(RtlQp& qp, std::uint64_t sequence, nic::DmaDone& done) {
  auto* entry = qp.answers.find(sequence);
  if (entry == nullptr) return;
  if (done.result == nic::AccessResult::ok) {
    qp.answers.arrived(*entry, std::move(done.payload));
    return emit_ready(qp, false);
  }
  // The bytes of a READ could not be had: a NAK in their place, and nothing behind it.
  const auto psn = entry->headers.bth.psn;
  const bool bus = done.result == nic::AccessResult::bus_error;
  const auto dropped = qp.answers.drop_from(sequence);
  credits_ += dropped;
  const auto count = static_cast<std::uint8_t>(dropped + qp.answer_packets.size());
  qp.answer_packets.clear();
  if (qp.state == roce::QpState::error) return;
  qp.answers_void = qp.deaf = true;
  qp.fatal_event = bus ? abi::EventType::qp_fatal : abi::EventType::qp_access_error;
  feed(AnswerEvent{.slot = qp.slot, .kind = AnswerEvent::Kind::left, .count = count});
  feed(AnswerEvent{.slot = qp.slot, .kind = AnswerEvent::Kind::failed,
                   .result = bus ? Result::operation : Result::access, .psn = psn.value()});
}

}  // namespace rnicsim::rtl
