// The requester's side of the model engine: send WQEs, request packets, responses, send completions.
#include <algorithm>

#include "model/nic/engine_cqes.h"
#include "model/nic/model_engine.h"

namespace rnicsim::nic {
namespace {

constexpr std::size_t kMessagesAhead = 32;  // WQEs parsed and not sent from
constexpr std::size_t kPacketsAhead = 32;   // packets of a QP that wait for their payload

bool has_room(const Qp& qp) { return qp.window.messages.size() - qp.window.cursor < kMessagesAhead; }

roce::Status local_status(AccessResult result) {
  return result == AccessResult::ok ? roce::Status::success : roce::Status::local_protection_error;
}

TransmitWork::Kind work_kind(roce::Operation operation) {
  switch (operation) {
    case roce::Operation::send: return TransmitWork::Kind::send;
    case roce::Operation::read: return TransmitWork::Kind::read;
    case roce::Operation::atomic: return TransmitWork::Kind::atomic;
    default: return TransmitWork::Kind::write;
  }
}

}  // namespace

void ModelEngine::take_doorbell(const SendDoorbell& doorbell) {
  auto* qp = find(doorbell.qpn);
  if (qp == nullptr || qp->state == roce::QpState::reset) return;
  // Receives have no doorbell of their own: one that announces no send tells a failed QP to look for them.
  if (qp->state == roce::QpState::error && qp->has_receive()) {
    qp->receive_ring.begin_flush();
    flush_receives(*qp);
  }
  if (!qp->has_send()) return;
  const bool takes = qp->sends() && has_room(*qp);
  const auto announced = qp->send_ring.announce(doorbell, qp->context, takes);
  if (announced == SendRing::Announced::invalid) return void(++counters_.doorbell_invalid);
  if (announced == SendRing::Announced::next_wqe) parse_sends(*qp);
  fetch_sends(*qp);
  schedule(*qp);
}

void ModelEngine::fetch_sends(Qp& qp) {
  const bool wanted = qp.flushes_sends() || qp.sends();
  if (wanted && qp.send_ring.wants_read() && has_room(qp))
    read_ring(qp, QueueKind::send, qp.send_ring.begin_read(qp.context));
}

void ModelEngine::sends_fetched(Qp& qp, const WqeBytes& wqe) {
  if (!qp.send_ring.end_read(wqe)) {
    // Nothing of it can complete, not even in error.
    if (qp.state == roce::QpState::error) return;
    out_.event({abi::EventType::qp_fatal, qp.qpn.value});
    return fail(qp);
  }
  parse_sends(qp);
  fetch_sends(qp);
}

void ModelEngine::parse_sends(Qp& qp) {
  while (qp.send_ring.has_next())
    post(qp, qp.send_ring.take_next(qp.qpn, send_rules(qp.context, limits_)));
  retire(qp, false);
}

void ModelEngine::post(Qp& qp, ParsedSend&& send) {
  auto& [wqe, request] = send;
  wqe.message = request.id = qp.next_message++;
  out_.wqe_held({qp.qpn, wqe.index, wqe.blocks});
  qp.window.post(request);
  const auto& message = qp.window.messages.back();
  trace_.wqe_taken({qp.qpn, QueueKind::send, wqe.index, wqe.opcode, request.length, request.signaled, request.id,
                    message.first, message.packets});
  qp.send_wqes.push_back(std::move(wqe));
  if (qp.flushes_sends()) flush_sends(qp);
}

bool ModelEngine::request_waits(const Qp& qp) const {
  return qp.sends() && qp.requests.size() < kPacketsAhead && qp.requester.can_send();
}

// The WQE of the next message to send from; one that is not at hand is asked for.
bool ModelEngine::next_wqe_at_hand(Qp& qp) {
  const auto& messages = qp.window.messages;
  auto at = qp.window.cursor;
  while (at < messages.size() && messages[at].sent == messages[at].packets) ++at;
  auto* wqe = at < messages.size() ? qp.wqe_of(messages[at].request.id) : nullptr;
  if (wqe == nullptr || wqe->presence == SendWqe::Presence::at_hand) return true;
  if (std::exchange(wqe->presence, SendWqe::Presence::asked) == SendWqe::Presence::asked) return false;
  out_.wqe_needed({issue(qp, Purpose::send_wqe, wqe->message), qp.qpn, wqe->index, wqe->blocks, qp.context.pasid,
                   SendRing::address(qp.context, wqe->index)});
  return false;
}

std::optional<TransmitWork> ModelEngine::send_request(Qp& qp) {
  auto packet = qp.requester.next_packet();
  if (!packet) return std::nullopt;
  --credits_;
  packet->headers.bth.pkey = roce::Bth::kDefaultPkey;
  auto& entry = qp.requests.add();
  entry.headers = packet->headers;
  entry.message = packet->message;
  entry.end = packet->end;
  const auto* wqe = qp.wqe_of(packet->message);
  std::optional<Tag> gather;
  if (packet->payload == 0 || wqe == nullptr) {
    entry.ready = true;
  } else if (wqe->inline_data) {
    entry.payload = wqe->inline_data->slice(packet->offset, packet->payload);
    entry.ready = true;
  } else {
    gather = issue(qp, Purpose::request_gather, entry.sequence);
  }
  trace_.request_began({qp.qpn, packet->message, packet->headers.bth.psn, packet->end, gather});
  if (gather)
    out_.gather({*gather, qp.qpn, qp.context.pd, 0, false, slice(wqe->regions, packet->offset, packet->payload)});
  const auto& row = roce::info(packet->headers.bth.opcode);
  emit_ready(qp, qp.requests);
  fetch_sends(qp);
  return TransmitWork{.unit = 0, .qpn = qp.qpn, .kind = work_kind(row.operation), .begins = row.begins()};
}

void ModelEngine::request_gathered(Qp& qp, std::uint64_t sequence, DmaDone& done) {
  auto* entry = qp.requests.find(sequence);
  if (entry == nullptr) return;
  if (done.result == AccessResult::ok) {
    qp.requests.arrived(*entry, std::move(done.payload));
    return emit_ready(qp, qp.requests);
  }
  qp.requester.fail(entry->message, local_status(done.result));
  credits_ += qp.requests.drop_from(sequence);
  retire(qp, false);
}

void ModelEngine::take_response(Qp& qp, PacketIn& packet) {
  using Kind = roce::ResponseOutcome::Kind;
  const auto outcome = qp.completer.receive(packet.headers, packet.payload.size());
  if (trace_.answer_taken) trace_.answer_taken({qp.qpn, packet.frame, qp.window.oldest_psn()});
  if (outcome.kind == Kind::sequence_error) ++counters_.packet_seq_err;
  if (outcome.kind == Kind::implied_sequence_error) ++counters_.implied_nak_seq_err;
  if (outcome.rewound) drop_requests(qp);
  if (outcome.kind == Kind::rnr) {
    ++counters_.rnr_nak_retry_err;
    out_.timer({qp.qpn, Timer::rnr, rnr_delay(outcome.rnr_timer)});
  }
  if (outcome.placement) {
    const auto& placement = *outcome.placement;
    // The number that an atomic brings is memory as the host reads it.
    if (placement.original) packet.payload = Payload::copy_of(std::as_bytes(std::span(&*placement.original, 1)));
    const auto* wqe = qp.wqe_of(placement.message);
    out_.scatter({issue(qp, Purpose::read_scatter, placement.message), qp.qpn, qp.context.pd, abi::access::kLocalWrite,
                  false, slice(wqe->regions, placement.offset, packet.payload.size()), packet.payload,
                  !roce::info(packet.headers.bth.opcode).ends()});
  }
  retire(qp, false);
  keep_ack_timer(qp, outcome.kind == Kind::progress || outcome.rewound);
}

void ModelEngine::read_placed(Qp& qp, std::uint64_t message, AccessResult result) {
  trace_.answer_placed({qp.qpn, message});
  qp.completer.placed(message, local_status(result));
  retire(qp, true);
}

void ModelEngine::start_local_work(Qp& qp) {
  const auto work = qp.requester.take_local_work();
  if (!work) return;
  const auto tag = issue(qp, Purpose::local_work, work->id);
  if (work->operation == roce::SendOperation::local_invalidate)
    return out_.invalidate({tag, qp.qpn, work->invalidate->value});
  out_.bind_window({tag, qp.qpn, qp.context.pd, *qp.wqe_of(work->id)->binding});
}

void ModelEngine::retire(Qp& qp, bool behind_payload) {
  if (!qp.sends()) return;
  while (const auto completion = qp.completer.take_completion()) {
    complete_send(qp, *completion, behind_payload);
    behind_payload = false;
    if (completion->status != roce::Status::success) return qp.reliable() ? fail(qp) : fail_sends(qp);
  }
  start_local_work(qp);
  announce_drained(qp);
  keep_ack_timer(qp, false);
  fetch_sends(qp);
}

void ModelEngine::complete_send(Qp& qp, const roce::Completion& completion, bool behind_payload) {
  auto& wqe = qp.send_wqes.front();
  wqe.inline_data.reset();
  const auto index = wqe.index, blocks = wqe.blocks;
  const auto send_opcode = wqe.opcode;
  const auto message = wqe.message;
  qp.send_wqes.pop_front();
  qp.send_retired = static_cast<std::uint16_t>(index + blocks);
  const bool error = completion.status != roce::Status::success;
  trace_.send_completed({qp.qpn, message, error || completion.request.signaled, !error});
  if (error) ++counters_.req_cqe_error;
  if (completion.status == roce::Status::remote_access_error) ++counters_.req_remote_access_errors;
  if (completion.status == roce::Status::remote_invalid_request_error) ++counters_.req_remote_invalid_request;
  WqeRetired retired{qp.qpn, index, blocks, qp.context.pasid, SendRing::address(qp.context, index), std::nullopt};
  if (error || completion.request.signaled) {
    retired.cqe = send_cqe(qp.qpn, {qp.context.send_cqn}, index, send_opcode, completion.request.length,
                           completion.status);
    retired.cqe->behind_payload = behind_payload;
  }
  out_.wqe_retired(std::move(retired));
}

// All that is not answered is to be sent again.
void ModelEngine::drop_requests(Qp& qp) {
  credits_ += qp.requests.drop_from(0);
  qp.left_psn = qp.window.oldest_psn();
}

// The time for an answer begins when the request is on the wire: it may be longer than the timeout says, never shorter.
void ModelEngine::packet_left() {
  const auto packet = leaving_.front();
  leaving_.pop_front();
  auto* qp = packet.request_end ? find(packet.qpn) : nullptr;
  if (qp == nullptr || qp->epoch != packet.epoch) return;
  qp->left_psn = *packet.request_end;
  if (qp->reliable()) return keep_ack_timer(*qp, false);
  --qp->leaving;
  if (qp->evicted) to_give_up_.push_back(packet.qpn);
  qp->completer.left(qp->left_psn);
  retire(*qp, false);
  schedule(*qp);
}

void ModelEngine::keep_ack_timer(Qp& qp, bool restart) {
  const bool wanted = qp.ack_timeout != 0 && qp.sends() && !qp.window.rnr_waiting && qp.requester.awaits_answer() &&
                      before(qp.window.oldest_psn(), qp.left_psn);
  if (!wanted) {
    if (std::exchange(qp.ack_timer, false)) out_.timer({qp.qpn, Timer::ack, {}, true});
    return;
  }
  if (qp.ack_timer && !restart) return;
  qp.ack_timer = true;
  out_.timer({qp.qpn, Timer::ack, ack_timeout(qp.ack_timeout)});
}

// The receive queue goes on (IBTA vol 1, 10.3.1: Send Queue Error).
void ModelEngine::fail_sends(Qp& qp) {
  set_state(qp, roce::QpState::sqe);
  drop_requests(qp);
  flush_sends(qp);
  fetch_sends(qp);
}

void ModelEngine::announce_drained(Qp& qp) {
  if (qp.state != roce::QpState::sqd || qp.drain_announced || !qp.requester.drained()) return;
  qp.drain_announced = true;
  if (qp.context.sqd_notify != 0) out_.event({abi::EventType::send_queue_drained, qp.qpn.value});
}

}  // namespace rnicsim::nic
