// SPDX-License-Identifier: Apache-2.0
// The requester's side of the engine shell: send WQEs, request packets, responses, send completions.
#include <algorithm>

#include "model/base/kernel.h"
#include "model/nic/engine/shell/engine_cqes.h"
#include "model/nic/engine/shell/engine_shell.h"

namespace rnicsim::nic {
namespace {

constexpr std::size_t kPacketsAhead = 32;  // packets of a QP that wait for their payload

TransmitWork::Kind work_kind(roce::Operation operation) {
  switch (operation) {
    case roce::Operation::send: return TransmitWork::Kind::send;
    case roce::Operation::read: return TransmitWork::Kind::read;
    case roce::Operation::atomic: return TransmitWork::Kind::atomic;
    default: return TransmitWork::Kind::write;
  }
}

// True if the response is written to memory here.
bool brings(const SendWqe& wqe) {
  return wqe.opcode == SendOpcode::read || wqe.opcode == SendOpcode::compare_swap ||
         wqe.opcode == SendOpcode::fetch_add;
}

bool reads_payload(const SendWqe& wqe) { return wqe.length != 0 && !wqe.inline_data && !brings(wqe); }

// Facts of a frame, or of one of several segments.
RawFacts facts_of(const SendWqe& wqe, const roce::SentRequest& sent) {
  return {.fill_checksums = wqe.checksums,
          .headers = wqe.headers,
          .offset = sent.offset,
          .number = wqe.segment != 0 ? sent.offset / wqe.segment : 0,
          .last = sent.offset + sent.payload == wqe.length};
}

}  // namespace

void EngineShell::take_doorbell(const SendDoorbell& doorbell) {
  auto* qp = find(doorbell.qpn);
  if (qp == nullptr) return;
  if (qp->state == roce::QpState::reset) return ignore_doorbell(*qp, Refusal::Why::wrong_state);
  // Receives have no doorbell: a doorbell without a send tells a failed QP to read the receive ring again.
  if (qp->state == roce::QpState::error && qp->has_receive()) {
    qp->receive_ring.begin_flush();
    flush_receives(*qp);
    if (!qp->has_send()) return;
  }
  if (!qp->has_send()) return ignore_doorbell(*qp, Refusal::Why::no_send_queue);
  const bool takes = qp->sends() && core_->post_room(qp->slot) != 0;
  const auto announced = qp->send_ring.announce(doorbell, qp->context, takes);
  if (announced == SendRing::Announced::invalid) return ignore_doorbell(*qp, Refusal::Why::past_ring);
  if (announced == SendRing::Announced::next_wqe) parse_sends(*qp);
  schedule_requests(*qp);
}

void EngineShell::ignore_doorbell(const Qp& qp, Refusal::Why why) {
  ++(why == Refusal::Why::past_ring ? counters_.doorbell_invalid : counters_.doorbell_wrong_state);
  trace_.doorbell_ignored({qp.qpn, why});
}

void EngineShell::fetch_sends(Qp& qp) {
  if (!qp.send_ring.wants_read() || !(qp.flushes_sends() || qp.sends())) return;
  if (const auto read = qp.send_ring.begin_read(qp.context, core_->post_room(qp.slot)))
    read_ring(qp, QueueKind::send, *read);
}

void EngineShell::sends_fetched(Qp& qp, const WqeBytes& wqe) {
  if (!qp.send_ring.end_read(wqe)) {
    // The ring cannot be read: its WQEs cannot complete, not even in error.
    if (qp.state == roce::QpState::error) return;
    out_.event({EventType::qp_fatal, qp.qpn.value});
    return fail(qp);
  }
  parse_sends(qp);
}

void EngineShell::parse_sends(Qp& qp) {
  const auto rules = send_rules(qp.context, limits_);
  while (qp.send_ring.has_next()) take_send(qp, rules);
  core_->settle_sends(qp.slot);
}

void EngineShell::take_send(Qp& qp, const SendRules& rules) {
  auto& wqe = qp.send_wqes.add_back();
  wqe.clear();
  roce::SendRequest request;
  qp.send_ring.take_next(qp.qpn, rules, wqe, request);
  wqe.message = request.id = qp.next_message++;
  wqe.length = request.length;
  wqe.segment = request.segment;
  wqe.signaled = request.signaled;
  wqe.invalidated = request.invalidate.value_or(roce::Rkey{}).value;
  out_.wqe_held({qp.qpn, wqe.index, wqe.blocks});
  core_->post(qp.slot, request);
}

void EngineShell::posted(roce::Slot slot, std::uint64_t message, roce::Psn first, std::uint32_t packets) {
  if (!trace_.wqe_taken) return;
  const auto& qp = of(slot);
  const auto& wqe = *of(slot).wqe_of(message);
  trace_.wqe_taken({qp.qpn, QueueKind::send, wqe.index, wqe.opcode, wqe.length, wqe.signaled, message, first, packets});
}

// The WQE of the next packet's message must be in the cache; else it is requested.
bool EngineShell::request_waits(Qp& qp) {
  if (qp.requests.size() >= kPacketsAhead) return false;
  const auto message = core_->next_send(qp.slot);
  if (!message) return false;
  auto& wqe = *qp.wqe_of(*message);
  if (wqe.presence == SendWqe::Presence::at_hand)
    return (request_reads_ < limits_.payload_reads || !awaits_read(qp, wqe)) &&
           (!on_demand_ || destination_present(qp, wqe));
  if (std::exchange(wqe.presence, SendWqe::Presence::asked) == SendWqe::Presence::asked) return false;
  out_.wqe_needed({issue(qp, Purpose::send_wqe, wqe.message), qp.qpn, wqe.index, wqe.blocks, qp.context.pasid,
                   qp.send_ring.address(qp.context, wqe.index)});
  return false;
}

// The number of concurrent payload reads is limited. The next read is that of the QP that waited longest.
bool EngineShell::awaits_read(Qp& qp, const SendWqe& wqe) {
  if (!reads_payload(wqe)) return false;
  if (!std::exchange(qp.awaits_read, true)) reads_awaited_.push_back(Qpn(qp.qpn));
  return true;
}

void EngineShell::payload_read() {
  --request_reads_;
  while (!reads_awaited_.empty() && request_reads_ < limits_.payload_reads) {
    const auto qpn = reads_awaited_.front();
    reads_awaited_.pop_front();
    auto* qp = find(qpn);
    if (qp == nullptr || !std::exchange(qp->awaits_read, false)) continue;
    schedule_requests(*qp);
    if (qp->evicted) to_give_up_.push_back(qpn);
    return;
  }
}

// READs and atomics are sent only when the memory for their response is present.
bool EngineShell::destination_present(Qp& qp, SendWqe& wqe) {
  if (!brings(wqe) || wqe.destination == SendWqe::Presence::at_hand) return true;
  if (std::exchange(wqe.destination, SendWqe::Presence::asked) == SendWqe::Presence::asked) return false;
  out_.presence_check({issue(qp, Purpose::destination_presence, wqe.message), qp.qpn, qp.context.pd,
                       access::kLocalWrite, true, wqe.regions});
  return wqe.destination == SendWqe::Presence::at_hand;
}

TransmitWork EngineShell::send_request(Qp& qp, std::uint8_t credit_class) {
  auto& entry = qp.requests.add(Packet::make());
  entry.credit_class = credit_class;
  const auto sent = core_->send(qp.slot, entry.packet->headers);
  counters_.selective_retransmits += sent.again;
  entry.message = sent.message;
  entry.end = sent.end;
  entry.bytes = sent.payload;
  room_.take(credit_class, entry.bytes);
  const auto& wqe = *qp.wqe_of(sent.message);
  std::optional<Tag> gather;
  if (sent.payload == 0) {
    entry.ready = true;
  } else if (wqe.inline_data) {
    entry.packet->put(wqe.inline_data->slice(sent.offset, sent.payload));
    entry.ready = true;
  } else {
    gather = issue(qp, Purpose::request_gather, entry.sequence);
    ++request_reads_;
  }
  if (qp.congestion) request_sent(qp, *entry.packet, sent.payload, sent.again);
  if (trace_.request_began)
    trace_.request_began({qp.qpn, sent.message, entry.packet->headers.bth.psn, sent.end, gather});
  const bool raw = qp.transport == roce::Transport::raw;
  if (raw) entry.packet->raw = facts_of(wqe, sent);
  if (qp.context.rate_limit != 0) pace(qp, entry, sent.payload);
  if (gather)
    out_.gather({*gather, qp.qpn, qp.context.pd, 0, false, slice(wqe.regions, sent.offset, sent.payload), raw});
  emit_ready(qp, qp.requests);
  return {.unit = 0,
          .qpn = qp.qpn,
          .kind = work_kind(sent.operation),
          .begins = sent.begins,
          .payload = static_cast<std::uint16_t>(sent.payload)};
}

void EngineShell::pace(Qp& qp, const PacketLane::Entry& entry, std::uint32_t payload) {
  const auto bytes = Pacer::bytes_of_frame(payload + entry.packet->raw.headers.size());
  qp.pacer.sent(bytes, qp.context.rate_limit, now());
}

void EngineShell::request_gathered(Qp& qp, std::uint64_t sequence, DmaDone& done) {
  auto* entry = qp.requests.find(sequence);
  if (entry == nullptr) return;
  if (done.result == AccessResult::ok) {
    qp.requests.arrived(*entry, std::move(done.payload));
    return emit_ready(qp, qp.requests);
  }
  const auto message = entry->message;
  const auto dropped = drop(qp.requests, sequence);
  core_->unreadable(qp.slot, message, local_status(done.result), dropped);
}

void EngineShell::take_response(Qp& qp, PacketIn& packet) {
  qp.responses.push_back(std::move(packet));
  const auto& waiting = qp.responses.back();
  core_->response(qp.slot, waiting.headers(), waiting.payload().size());
}

void EngineShell::responded(roce::Slot slot, const roce::ResponseOutcome& outcome, roce::Psn oldest) {
  using Kind = roce::ResponseOutcome::Kind;
  auto& qp = of(slot);
  const auto packet = std::move(qp.responses.front().packet);
  qp.responses.pop_front();
  if (trace_.answer_taken) trace_.answer_taken({qp.qpn, packet->id(), oldest});
  if (outcome.kind != Kind::progress)
    answered_otherwise(qp, outcome, oldest, *packet);
  else if (qp.early_timeouts != 0)
    recovered(qp);
  if (control_hears(qp, outcome.rewound)) control_heard(qp, outcome, oldest, *packet);
  if (outcome.rewound) drop_requests(qp);
  if (!outcome.placement) return;
  const auto& placement = *outcome.placement;
  // The original value of an atomic is written to memory in the host's byte order.
  const auto& original = packet->headers.atomic_ack;
  auto payload = original ? Payload::copy_of(std::as_bytes(std::span(&*original, 1))) : packet->payload();
  const auto* wqe = qp.wqe_of(placement.message);
  const auto bytes = payload.size();
  out_.scatter({issue(qp, Purpose::read_scatter, placement.message), qp.qpn, qp.context.pd, access::kLocalWrite, false,
                slice(wqe->regions, placement.offset, bytes), std::move(payload),
                !roce::info(packet->headers.bth.opcode).ends()});
  if (packet->headers.bth.ack_request) acknowledge_response(qp, oldest);
}

void EngineShell::answered_otherwise(Qp& qp, const roce::ResponseOutcome& outcome, roce::Psn oldest,
                                     const Packet& packet) {
  using Kind = roce::ResponseOutcome::Kind;
  if (outcome.kind == Kind::sequence_error) ++counters_.packet_seq_err;
  if (outcome.kind == Kind::implied_sequence_error) ++counters_.implied_nak_seq_err;
  if (outcome.kind == Kind::rnr) ++counters_.rnr_nak_retry_err;
  // The acknowledgement of this READ response may be lost: acknowledge the response again.
  if (outcome.kind == Kind::duplicate && packet.headers.bth.ack_request) acknowledge_response(qp, oldest);
}

void EngineShell::ack_timed_out(roce::Slot slot, bool rewound) {
  if (!of(slot).early_timer) ++counters_.local_ack_timeout_err;
  if (control_hears(of(slot), rewound)) control_timed_out(of(slot), rewound);
  if (rewound) drop_requests(of(slot));
}

void EngineShell::local_work(roce::Slot slot, std::uint64_t message) {
  auto& qp = of(slot);
  const auto tag = issue(qp, Purpose::local_work, message);
  const auto& wqe = *qp.wqe_of(message);
  const auto pd = qp.context.pd;
  if (const auto* binding = std::get_if<WindowBinding>(&wqe.key_work))
    return out_.bind_window({tag, qp.qpn, pd, *binding});
  if (const auto* registration = std::get_if<Registration>(&wqe.key_work))
    return out_.fast_register({tag, qp.qpn, pd, *registration});
  out_.invalidate({tag, qp.qpn, pd, wqe.invalidated});
}

void EngineShell::drained(roce::Slot slot) {
  const auto& qp = of(slot);
  if (qp.context.sqd_notify != 0) out_.event({EventType::send_queue_drained, qp.qpn.value});
}

void EngineShell::completed(roce::Slot slot, std::uint64_t, roce::Status status, bool placed_last) {
  auto& qp = of(slot);
  complete_send(qp, status, placed_last);
  if (status != roce::Status::success && qp.sends()) qp.reliable() ? fail(qp) : fail_sends(qp);
}

void EngineShell::complete_send(Qp& qp, roce::Status status, bool behind_payload) {
  auto& wqe = qp.send_wqes.front();
  const bool error = status != roce::Status::success;
  const bool tells = error || wqe.signaled;
  WqeRetired retired{qp.qpn,      wqe.index, wqe.blocks, qp.context.pasid, qp.send_ring.address(qp.context, wqe.index),
                     std::nullopt};
  if (tells) {
    retired.cqe = send_cqe(qp.qpn, {qp.context.send_cqn}, wqe.index, wqe.opcode, wqe.length, status);
    retired.cqe->behind_payload = behind_payload;
  }
  qp.send_retired = static_cast<std::uint16_t>(wqe.index + wqe.blocks);
  wqe.inline_data.reset();
  const auto message = wqe.message;
  qp.send_wqes.pop_front();
  if (trace_.send_completed) trace_.send_completed({qp.qpn, message, tells, !error});
  if (error) ++counters_.req_cqe_error;
  if (status == roce::Status::flushed_error) ++counters_.req_cqe_flush_error;
  if (status == roce::Status::transport_retry_exceeded) ++counters_.req_transport_retries_exceeded;
  if (status == roce::Status::rnr_retry_exceeded) ++counters_.req_rnr_retries_exceeded;
  if (status == roce::Status::remote_access_error) ++counters_.req_remote_access_errors;
  if (status == roce::Status::remote_invalid_request_error) ++counters_.req_remote_invalid_request;
  out_.wqe_retired(std::move(retired));
}

// Packets that have not left are void; the core sends them again.
void EngineShell::drop_requests(Qp& qp) { core_->dropped_requests(qp.slot, drop(qp.requests)); }

// The receive queue continues (IBTA vol 1, 10.3.1: Send Queue Error).
void EngineShell::fail_sends(Qp& qp) {
  set_state(qp, roce::QpState::sqe);
  drop(qp.requests);
  core_->halt_sends(qp.slot);
  fetch_sends(qp);
}

}  // namespace rnicsim::nic
