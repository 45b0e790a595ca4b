// The send side: WQEs into the RTL's window, packets that it puts out, responses, completions.
#include <span>
#include <utility>

#include "model/nic/engine_cqes.h"
#include "rtl/cosim/rtl_engine.h"

namespace rnicsim::rtl {
namespace {

bool has_room(const RtlQp& qp) { return qp.parsed.empty() && qp.window.size() < kMessages; }

roce::Status local_status(nic::AccessResult result) {
  return result == nic::AccessResult::ok ? roce::Status::success : roce::Status::local_protection_error;
}

nic::TransmitWork::Kind work_kind(roce::Operation operation) {
  switch (operation) {
    case roce::Operation::send: return nic::TransmitWork::Kind::send;
    case roce::Operation::read: return nic::TransmitWork::Kind::read;
    case roce::Operation::atomic: return nic::TransmitWork::Kind::atomic;
    default: return nic::TransmitWork::Kind::write;
  }
}

MessageKind kind_of(roce::SendOperation operation) {
  switch (operation) {
    case roce::SendOperation::send: return MessageKind::send;
    case roce::SendOperation::write: return MessageKind::write;
    case roce::SendOperation::read: return MessageKind::read;
    case roce::SendOperation::fetch_add: return MessageKind::fetch_add;
    case roce::SendOperation::compare_swap: return MessageKind::compare_swap;
    default: return MessageKind::nop;
  }
}

Post post_of(const RtlQp& qp, const roce::SendRequest& request) {
  return {.slot = qp.slot, .operation = kind_of(request.operation), .length = request.length,
          .remote_address = request.remote_address, .rkey = request.rkey.value, .swap_add = request.swap_add,
          .compare = request.compare, .has_immediate = request.immediate.has_value(),
          .immediate = request.immediate.value_or(0), .solicited = request.solicited, .fence = request.fence,
          .refused = static_cast<std::uint8_t>(request.refused.value_or(roce::Status::success))};
}

}  // namespace

void RtlEngine::take_doorbell(const nic::SendDoorbell& doorbell) {
  auto* qp = find(doorbell.qpn);
  if (qp == nullptr || qp->state == roce::QpState::reset) return;
  // Receives have no doorbell of their own: one that announces no send tells a failed QP to look for them.
  if (qp->state == roce::QpState::error && qp->has_receive()) {
    qp->receive_ring.begin_flush();
    flush_receives(*qp);
  }
  if (!qp->has_send()) return;
  const auto announced = qp->send_ring.announce(doorbell, qp->context, qp->sends() && has_room(*qp));
  if (announced == nic::SendRing::Announced::invalid) return void(++counters_.doorbell_invalid);
  if (announced == nic::SendRing::Announced::next_wqe) parse_sends(*qp);
  fetch_sends(*qp);
}

void RtlEngine::fetch_sends(RtlQp& qp) {
  const bool wanted = qp.state == roce::QpState::error || qp.sends();
  if (wanted && qp.send_ring.wants_read() && has_room(qp))
    read_ring(qp, nic::QueueKind::send, qp.send_ring.begin_read(qp.context));
}

void RtlEngine::sends_fetched(RtlQp& qp, const nic::WqeBytes& wqe) {
  if (!qp.send_ring.end_read(wqe)) {
    // Nothing of it can complete, not even in error.
    if (qp.state == roce::QpState::error) return;
    out_.event({abi::EventType::qp_fatal, qp.qpn.value});
    return fail(qp);
  }
  parse_sends(qp);
  fetch_sends(qp);
}

void RtlEngine::parse_sends(RtlQp& qp) {
  while (qp.send_ring.has_next()) {
    auto& send = qp.parsed.push_back(qp.send_ring.take_next(
        qp.qpn, {.max_message = nic::max_message(qp.context, limits_), .invalidate = false, .windows = false}));
    out_.wqe_held({qp.qpn, send.wqe.index, send.wqe.blocks});
  }
  post_parsed(qp);
}

void RtlEngine::post_parsed(RtlQp& qp) {
  for (; !qp.parsed.empty() && qp.window.size() < kMessages; qp.parsed.pop_front()) {
    auto& send = qp.window.push_back(std::move(qp.parsed.front()));
    send.wqe.message = send.request.id = qp.posted++;
    feed(post_of(qp, send.request));
  }
}

// The WQE of a packet has to be at hand; one that is not is asked for. A packet to be sent again need not be, when its
// message was answered for in the meantime.
bool RtlEngine::request_waits(RtlQp& qp) {
  while (!qp.request_packets.empty() && qp.request_packets.front().message < qp.retired) {
    qp.request_packets.pop_front();
    feed(SendEvent{.slot = qp.slot, .kind = SendEvent::Kind::left, .count = 1});
  }
  if (qp.request_packets.empty()) return false;
  auto& wqe = qp.message(qp.request_packets.front().record.message).wqe;
  if (wqe.presence == nic::SendWqe::Presence::at_hand) return true;
  if (std::exchange(wqe.presence, nic::SendWqe::Presence::asked) == nic::SendWqe::Presence::asked) return false;
  out_.wqe_needed({issue(qp, Purpose::send_wqe, wqe.message), qp.qpn, wqe.index, wqe.blocks, qp.context.pasid,
                   nic::SendRing::address(qp.context, wqe.index)});
  return false;
}

nic::TransmitWork RtlEngine::send_request(RtlQp& qp) {
  const auto record = qp.request_packets.front().record;
  qp.request_packets.pop_front();
  const auto& row = roce::info(static_cast<roce::Opcode>(record.opcode));
  auto& send = qp.message(record.message);
  auto& entry = qp.requests.add();
  auto& headers = entry.headers;
  headers.bth.opcode = row.opcode;
  headers.bth.destination = {record.destination};
  headers.bth.psn = roce::Psn(record.psn);
  headers.bth.ack_request = record.ack_request;
  headers.bth.solicited = record.solicited;
  headers.bth.pad = static_cast<std::uint8_t>(-record.bytes & 3);
  if (row.has(roce::header::kReth)) headers.reth = roce::Reth{record.address, {record.rkey}, record.length};
  if (row.has(roce::header::kAtomic))
    headers.atomic = roce::AtomicEth{record.address, {record.rkey}, record.swap_add, record.compare};
  if (row.has(roce::header::kImmediate)) headers.immediate = record.immediate;
  entry.message = send.wqe.message;
  entry.end = roce::Psn(record.end_psn);
  std::optional<nic::Tag> gather;
  if (record.bytes == 0) {
    entry.ready = true;
  } else if (send.wqe.inline_data) {
    entry.payload = send.wqe.inline_data->slice(record.offset, record.bytes);
    entry.ready = true;
  } else {
    gather = issue(qp, Purpose::request_gather, entry.sequence);
  }
  trace_.request_began({qp.qpn, entry.message, headers.bth.psn, entry.end, gather});
  if (gather)
    out_.gather({*gather, qp.qpn, qp.context.pd, 0, false, nic::slice(send.wqe.regions, record.offset, record.bytes)});
  emit_ready(qp, true);
  return {.unit = 0, .qpn = qp.qpn, .kind = work_kind(row.operation), .begins = row.begins()};
}

void RtlEngine::request_gathered(RtlQp& qp, std::uint64_t sequence, nic::DmaDone& done) {
  auto* entry = qp.requests.find(sequence);
  if (entry == nullptr) return;
  if (done.result == nic::AccessResult::ok) {
    qp.requests.arrived(*entry, std::move(done.payload));
    return emit_ready(qp, true);
  }
  if (entry->message >= qp.retired)
    feed(SendEvent{.slot = qp.slot, .kind = SendEvent::Kind::failed,
                   .message = static_cast<std::uint8_t>(entry->message % kMessages),
                   .status = static_cast<std::uint8_t>(local_status(done.result))});
  const auto dropped = qp.requests.drop_from(sequence);
  credits_ += dropped;
  const auto count = static_cast<std::uint8_t>(dropped + qp.request_packets.size());
  qp.request_packets.clear();
  feed(SendEvent{.slot = qp.slot, .kind = SendEvent::Kind::left, .count = count});
}

// All that has not left is to be sent again.
void RtlEngine::void_requests(RtlQp& qp) {
  const auto dropped = qp.requests.drop_from(0);
  credits_ += dropped;
  const auto count = static_cast<std::uint8_t>(dropped + qp.request_packets.size());
  qp.request_packets.clear();
  if (count != 0) feed(SendEvent{.slot = qp.slot, .kind = SendEvent::Kind::left, .count = count});
}

void RtlEngine::take(const SendRecord& record) {
  if (record.op == SendOp::control) {
    const auto kind = rtl_.input<SendControl>().kind;
    if (kind == Control::reset) --slots_[record.slot].send_void;
    if (kind == Control::query) told(asked_of_sends_, &Snapshot::send, record);
    return;
  }
  std::optional<Fed> fed;
  if (record.op == SendOp::response) {
    fed = std::move(responses_.front());
    responses_.pop_front();
  }
  if (record.op != SendOp::complete)
    behind_payload_ = record.op == SendOp::event && rtl_.input<SendEvent>().kind == SendEvent::Kind::placed;
  auto* qp = slots_[record.slot].send_void == 0 ? of_slot(record.slot) : nullptr;
  if (qp == nullptr) return;
  switch (record.op) {
    case SendOp::ack_timeout:
      ++counters_.local_ack_timeout_err;
      if (record.rewound) void_requests(*qp);
      break;
    case SendOp::response: take_response(*qp, record, fed->packet); break;
    case SendOp::post: take_posted(*qp, record); break;
    case SendOp::packet:
      if (qp->sends()) qp->request_packets.push_back({record, qp->message_of(record.message)});
      break;
    case SendOp::complete: complete_send(*qp, record); break;
    case SendOp::drained:
      if (qp->context.sqd_notify != 0) out_.event({abi::EventType::send_queue_drained, qp->qpn.value});
      break;
    default: break;
  }
  schedule(*qp);
  give_up(*qp);
}

void RtlEngine::take_response(RtlQp& qp, const SendRecord& record, nic::PacketIn& packet) {
  if (trace_.answer_taken) trace_.answer_taken({qp.qpn, packet.frame, roce::Psn(record.end_psn)});
  if (record.outcome == Outcome::sequence_error) ++counters_.packet_seq_err;
  if (record.outcome == Outcome::implied_sequence_error) ++counters_.implied_nak_seq_err;
  if (record.outcome == Outcome::rnr) ++counters_.rnr_nak_retry_err;
  if (record.rewound) void_requests(qp);
  if (!record.place) return;
  auto& send = qp.message(record.message);
  // The number that an atomic brings is memory as the host reads it.
  if (packet.headers.atomic_ack)
    packet.payload = Payload::copy_of(std::as_bytes(std::span(&*packet.headers.atomic_ack, 1)));
  out_.scatter({issue(qp, Purpose::read_scatter, send.wqe.message), qp.qpn, qp.context.pd, abi::access::kLocalWrite,
                false, nic::slice(send.wqe.regions, record.offset, packet.payload.size()), packet.payload,
                !roce::info(packet.headers.bth.opcode).ends()});
}

void RtlEngine::take_posted(RtlQp& qp, const SendRecord& record) {
  if (!trace_.wqe_taken) return;
  const auto& [wqe, request] = qp.message(record.message);
  const roce::Psn first(record.psn);
  trace_.wqe_taken({qp.qpn, nic::QueueKind::send, wqe.index, wqe.opcode, request.length, request.signaled, request.id,
                    first, static_cast<std::uint32_t>(distance(first, roce::Psn(record.end_psn)))});
}

void RtlEngine::complete_send(RtlQp& qp, const SendRecord& record) {
  const auto send = std::move(qp.window.front());
  qp.window.pop_front();
  ++qp.retired;
  const auto& [wqe, request] = send;
  qp.send_retired = static_cast<std::uint16_t>(wqe.index + wqe.blocks);
  const auto status = static_cast<roce::Status>(record.status);
  const bool error = status != roce::Status::success;
  trace_.send_completed({qp.qpn, wqe.message, error || request.signaled, !error});
  if (error) ++counters_.req_cqe_error;
  if (status == roce::Status::remote_access_error) ++counters_.req_remote_access_errors;
  if (status == roce::Status::remote_invalid_request_error) ++counters_.req_remote_invalid_request;
  nic::WqeRetired retired{qp.qpn, wqe.index, wqe.blocks, qp.context.pasid,
                          nic::SendRing::address(qp.context, wqe.index), std::nullopt};
  if (error || request.signaled) {
    retired.cqe = nic::send_cqe(qp.qpn, {qp.context.send_cqn}, wqe.index, wqe.opcode, request.length, status);
    retired.cqe->behind_payload = std::exchange(behind_payload_, false);
  }
  out_.wqe_retired(std::move(retired));
  if (error) fail(qp);
  post_parsed(qp);
  fetch_sends(qp);
}

}  // namespace rnicsim::rtl
