// SPDX-License-Identifier: Apache-2.0
// Requests at the responder in the engine shell: request packets in, payload placed, receives taken. Pending answers
// are in the core and in engine_answers.cpp.
#include <algorithm>
#include <utility>

#include "model/nic/engine/shell/engine_cqes.h"
#include "model/nic/engine/shell/engine_shell.h"
#include "model/nic/packets/receive/received_frame.h"

namespace rnicsim::nic {
namespace {

using Kind = roce::Verdict::Kind;

constexpr std::uint32_t kMostPadding = 63;  // to the end of a cache line

// True: packets before this one are missing.
bool tells_of_gap(const roce::Verdict& verdict) {
  if (verdict.kind == Kind::keep) return verdict.tells_of_gap;
  if (verdict.kind == Kind::reject) return verdict.syndrome == roce::Aeth::kSequenceError;
  return verdict.kind == Kind::drop && !verdict.duplicate && verdict.cause == roce::DropCause::out_of_sequence;
}

// True for a SEND of one packet, no longer than the QP's inline_receive: its payload goes into the CQE.
bool comes_in_cqe(const Qp& qp, const roce::Verdict& verdict, std::uint32_t bytes) {
  return verdict.to_receive_wqe && verdict.begins_receive && verdict.completes_receive &&
         bytes <= qp.context.inline_receive;
}

// True for a datagram over IPv4: only an IPv6 header fills the GRH from its first byte on.
bool came_by_ipv4(const PacketIn& packet) {
  return packet.grh.size() != 0 && std::to_integer<unsigned>(packet.grh.bytes().front()) >> 4 != 6;
}

// A datagram with its GRH, as written to memory.
Payload joined(const Payload& grh, const Payload& payload) {
  Payload both(grh.size() + payload.size());
  std::ranges::copy(grh.bytes(), both.writable().begin());
  std::ranges::copy(payload.bytes(), both.writable().begin() + grh.size());
  return both;
}

void tell_of_frame(const RawFacts& facts, Cqe& cqe) {
  cqe.checksums_right = facts.checksums_right;
  cqe.tagged = facts.flow_tag.has_value();
  cqe.immediate = facts.flow_tag.value_or(0);
  cqe.rss_hash = facts.rss_hash;
  cqe.vlan = facts.vlan;
}

void tell_of_tag(const roce::FrameAddresses& came, Cqe& cqe) {
  if (came.tagged()) cqe.vlan = came.tag();
}

void adapt(const Qp& qp, PacketIn& frame) {
  const ReceiveOptions options{qp.context.strip_vlan, qp.context.scatter_fcs};
  if (options.any()) frame.packet = adapted(*frame.packet, options);
}

}  // namespace

void EngineShell::take_request(Qp& qp, PacketIn& packet) {
  const bool connects = qp.connected() && qp.state == roce::QpState::rtr;
  if (!std::exchange(qp.established, true) && connects)
    out_.event({EventType::communication_established, qp.qpn.value});
  if (trace_.request_taken) trace_.request_taken({qp.qpn, packet.headers().bth.psn, packet.packet->id()});
  if (qp.transport == roce::Transport::raw) adapt(qp, packet);
  qp.inbound.push_back(std::move(packet));
  pump_inbound(qp);
}

// The head of the queue stays until its final verdict.
void EngineShell::pump_inbound(Qp& qp) {
  while (qp.has_request() && !qp.asked && !qp.waits && qp.responds()) {
    const auto& packet = qp.next_request();
    qp.asked = true;
    core_->request(qp.slot, packet.headers(), packet.payload().size(), offer_of(qp, packet));
  }
}

roce::Offer EngineShell::offer_of(const Qp& qp, const PacketIn& packet) const {
  using roce::Operation::send;
  const auto& row = roce::info(packet.headers().bth.opcode);
  const auto& filling = qp.receive_ring.filling();
  roce::Offer offer{
      .queue = qp.named.found, .domain = qp.named.pd, .access_granted = qp.access_granted, .absent = qp.absent};
  if (keeps_early_) offer.may_keep = may_keep();
  if (row.operation == roce::Operation::send && !row.begins()) {
    offer.receive_bytes = filling ? filling->bytes : 0;
  } else if (filling && (qp.transport == roce::Transport::uc || (begins_again_ && row.operation == send))) {
    // The message that has this receive lost a packet. UC: another message takes it; go-back-0: the same one does.
    offer.receive = roce::Offer::Receive::available;
    offer.receive_bytes = filling->bytes;
  } else if (qp.receive_ring.held() != 0) {
    offer.receive = on_demand_ ? held_receive(qp, row) : roce::Offer::Receive::available;
    offer.receive_bytes = qp.receive_ring[0].bytes;
  } else if (qp.no_receive) {
    offer.receive = roce::Offer::Receive::none;
  }
  return offer;
}

// For a SEND, the receive counts as available only when its memory is known to be present.
roce::Offer::Receive EngineShell::held_receive(const Qp& qp, const roce::OpcodeInfo& row) const {
  using enum roce::Offer::Receive;
  if (row.operation != roce::Operation::send || qp.receive_memory == Qp::ReceiveMemory::present) return available;
  return qp.receive_memory == Qp::ReceiveMemory::absent ? absent : unknown;
}

// Checks the memory of the receive: for a message of one packet as much as the packet fills; for a longer message all
// of it, since its length is not known yet. A datagram waits until the memory is present, since it would not be resent.
void EngineShell::look_for_memory(Qp& qp) {
  const auto& packet = qp.next_request();
  const auto& receive = qp.receive_ring[0];
  const auto bytes = packet.payload().size() + (qp.transport == roce::Transport::ud ? roce::kGrhBytes : 0);
  const bool only = roce::info(packet.headers().bth.opcode).ends();
  const auto length = static_cast<std::uint32_t>(only ? std::min<std::uint64_t>(bytes, receive.bytes) : receive.bytes);
  out_.presence_check({issue(qp, Purpose::receive_presence), qp.qpn, qp.receive_pd(), access::kLocalWrite,
                       qp.transport == roce::Transport::ud, slice(receive.regions, 0, length)});
}

void EngineShell::validated(roce::Slot slot, const roce::Verdict& verdict) {
  auto& qp = of(slot);
  if (verdict.kind == Kind::wants_receive) return want_receive(qp);
  if (verdict.kind == Kind::wants_queue) return want_queue(qp);
  if (verdict.kind == Kind::wants_access) {
    if (!std::exchange(checked_later_, false)) ask_for_access(qp, issue(qp, Purpose::access_check), verdict);
    return;
  }
  qp.asked = false;
  if (verdict.kind == Kind::busy) return void(qp.waits = true);
  auto& packet = qp.next_request();
  carry_verdict(qp, packet, verdict);
  if (verdict.kind == Kind::keep) keep_early(qp, std::move(packet), verdict);
  qp.request_validated();
  if (verdict.next_kept) qp.early.make_due(*verdict.next_kept);
  qp.access_granted.reset();
  qp.absent = false;
  qp.receive_memory = Qp::ReceiveMemory::unknown;
  qp.no_receive = false;
  qp.named.found = roce::Offer::Queue::unknown;
  core_->settle_answers(slot);
  // After the payload was sent to memory.
  if (verdict.begins_receive && qp.has_receive() && qp.receive_ring.low(qp.context)) look_for_receives(qp);
  if (qp.has_srq()) give_back_held(qp);
}

void EngineShell::want_receive(Qp& qp) {
  if (on_demand_ && qp.receive_ring.held() != 0) return look_for_memory(qp);
  qp.looks_for_receive = true;
  qp.receive_ring.want();
  look_for_receives(qp);
}

void EngineShell::ask_for_access(Qp& qp, Tag tag, const roce::Verdict& wanted) {
  out_.access_check({tag,
                     qp.qpn,
                     qp.of_domain() ? qp.named.pd : qp.context.pd,
                     wanted.access,
                     true,
                     {wanted.range.rkey.value, wanted.range.address, wanted.range.length}});
}

std::optional<bool> EngineShell::granted(roce::Slot slot, const roce::Verdict& wanted) {
  auto& qp = of(slot);
  checking_ = issue(qp, Purpose::access_check);
  ask_for_access(qp, checking_, wanted);
  if (checking_ == 0) return granted_;
  checking_ = 0;
  checked_later_ = true;
  return std::nullopt;
}

void EngineShell::carry_verdict(Qp& qp, const PacketIn& packet, const roce::Verdict& verdict) {
  count_request(packet, verdict);
  if (limits_.congestion.np.cnp_on_loss && tells_of_gap(verdict))
    tell_congestion(qp, packet, CongestionSeen::Cause::lost);
  const bool answered_before = verdict.kind == Kind::acknowledge || verdict.kind == Kind::replay;
  if (answered_before) trace_.request_placed({qp.qpn, packet.headers().bth.psn, {}});
  switch (verdict.kind) {
    case Kind::drop: return count_drop(verdict);
    case Kind::reject: return reject(qp, verdict);
    case Kind::place: return place(qp, packet, verdict);
    default:
      if (verdict.duplicate) ++counters_.duplicate_request;
      if (verdict.kind == Kind::read && verdict.duplicate && qp.read_acks) responses_lost(qp);
  }
}

// A message is counted when its first packet is accepted.
void EngineShell::count_request(const PacketIn& packet, const roce::Verdict& verdict) {
  const auto& row = roce::info(packet.headers().bth.opcode);
  const bool accepted = verdict.kind != Kind::drop && verdict.kind != Kind::reject && verdict.kind != Kind::keep;
  if (!accepted || verdict.duplicate || !row.begins()) return;
  switch (row.operation) {
    case roce::Operation::write: return void(++counters_.rx_write_requests);
    case roce::Operation::read: return void(++counters_.rx_read_requests);
    case roce::Operation::atomic:
    case roce::Operation::atomic_write: return void(++counters_.rx_atomic_requests);
    default: return;
  }
}

void EngineShell::count_drop(const roce::Verdict& verdict) {
  if (verdict.duplicate) return void(++counters_.duplicate_request);
  switch (verdict.cause) {
    case roce::DropCause::out_of_sequence: return void(++counters_.out_of_sequence);
    case roce::DropCause::no_receive: return void(++counters_.out_of_buffer);
    case roce::DropCause::bad_qkey: return void(++counters_.bad_qkey);
    case roce::DropCause::absent: return void(++counters_.absent_dropped);
    case roce::DropCause::unfit: return void(++counters_.silently_dropped);
  }
}

void EngineShell::place(Qp& qp, const PacketIn& packet, const roce::Verdict& verdict) {
  if (verdict.begins_receive) qp.receive_ring.fill_next();
  if (qp.of_domain() && roce::info(packet.headers().bth.opcode).begins()) qp.named.message_pd = qp.named.pd;
  if (placed_early(qp)) return settle_early(qp, packet, verdict);
  auto payload = qp.transport == roce::Transport::ud ? joined(packet.grh, packet.payload()) : packet.payload();
  const auto bytes = payload.size();
  const AnswerAt at{verdict.pending_answer, packet.headers().bth.psn};
  const bool in_cqe = comes_in_cqe(qp, verdict, bytes);
  if (bytes == 0 || in_cqe) {
    complete_receive(qp, packet, verdict);
    if (in_cqe) qp.cqes.back().write.payload = std::move(payload);
    tell_placed(qp, at);
    if (bytes != 0) core_->placed(qp.slot, verdict.pending_answer, roce::MemoryResult::ok);
    return;
  }
  Scatter scatter{.tag = issue(qp, Purpose::receive_scatter, at.argument()),
                  .qpn = qp.qpn,
                  .pd = verdict.to_receive_wqe ? qp.receive_pd() : qp.remote_pd(),
                  .access = access::kLocalWrite,
                  .remote = !verdict.to_receive_wqe,
                  .regions = {},
                  .payload = std::move(payload),
                  .more = !verdict.completes && !verdict.acknowledge};
  if (verdict.to_receive_wqe) {
    const auto& regions = qp.receive_ring.filling()->regions;
    scatter.regions = slice(regions, verdict.offset, bytes);
    if (qp.context.pad_writes)
      scatter.room = static_cast<std::uint8_t>(std::min(room_behind(regions, verdict.offset + bytes), kMostPadding));
  } else {
    scatter.access = verdict.access;
    scatter.regions.push_back({verdict.range.rkey.value, verdict.range.address, bytes});
  }
  complete_receive(qp, packet, verdict);
  out_.scatter(std::move(scatter));
}

void EngineShell::complete_receive(Qp& qp, const PacketIn& last, const roce::Verdict& verdict) {
  if (!verdict.completes_receive) return;
  const auto index = qp.receive_ring.filling()->index;
  qp.cqes.push_back({receive_cqe(qp.qpn, qp.receive_cqn(), index, last.headers(), verdict.message_bytes), index,
                     verdict.pending_answer});
  if (qp.of_domain()) name_queue(qp.cqes.back().write, qp.shared.srqn, qp.shared.life);
  if (came_by_ipv4(last)) qp.cqes.back().write.cqe.ipv4 = true;
  if (last.grh.size() != 0) tell_of_tag(last.packet->addresses, qp.cqes.back().write.cqe);
  if (qp.transport == roce::Transport::raw) tell_of_frame(last.packet->raw, qp.cqes.back().write.cqe);
  qp.receive_ring.filled();
}

void EngineShell::reject(Qp& qp, const roce::Verdict& verdict) {
  if (verdict.syndrome == roce::Aeth::kSequenceError) ++counters_.out_of_sequence;
  if (verdict.syndrome == roce::Aeth::kInvalidRequest) ++counters_.resp_invalid_request;
  if (verdict.syndrome == roce::Aeth::kRemoteAccessError) ++counters_.resp_remote_access_errors;
  if ((verdict.syndrome & roce::Aeth::kClassMask) == roce::Aeth::kRnrNak)
    ++(qp.absent || qp.receive_memory == Qp::ReceiveMemory::absent ? counters_.absent_rnr : counters_.out_of_buffer);
  if (verdict.begins_receive) qp.receive_ring.fill_next();
  if (const auto& filling = qp.receive_ring.filling(); filling && verdict.receive_status) {
    qp.cqes.push_back(
        {receive_error(qp, filling->index, *verdict.receive_status), filling->index, verdict.pending_answer});
    qp.receive_ring.filled();
  }
  if (verdict.access_event) qp.fatal_event = EventType::qp_access_error;
  if (verdict.request_event) qp.fatal_event = EventType::qp_request_error;
  qp.drops_requests |= verdict.fatal;
}

}  // namespace rnicsim::nic
