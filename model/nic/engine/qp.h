// SPDX-License-Identifier: Apache-2.0
// The engine shell's state of a queue pair: rings, WQEs, packets under way and their purpose. The transport's state is
// in the core.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "model/base/fifo.h"
#include "model/base/pooled_list.h"
#include "model/nic/engine/congestion_gate.h"
#include "model/nic/engine/early_packets.h"
#include "model/nic/engine/pacer.h"
#include "model/nic/engine/packet_lane.h"
#include "model/nic/engine/qp_context.h"
#include "model/nic/engine/read_acks.h"
#include "model/nic/engine/receive_ring.h"
#include "model/nic/engine/send_ring.h"
#include "model/nic/engine/telemetry_returns.h"
#include "model/nic/seam/qp_engine.h"
#include "model/roce/qp_core.h"

namespace rnicsim::nic {

struct Qp {
  Qp(Qpn number, roce::Transport type, std::uint64_t birth, roce::Slot place, const QpLimits& limits)
      : qpn(number),
        transport(type),
        epoch(birth),
        slot(place),
        unit(unit_of(number, limits.transmit_units)),
        send_ring(*limits.personality),
        receive_ring(*limits.personality, limits.receives_ahead) {}

  Qpn qpn;
  const roce::Transport transport;
  std::uint64_t epoch;  // distinguishes QPs that had the same number
  roce::Slot slot;      // index in the core
  std::uint32_t unit;   // transmit unit of its last turn
  QpContext context;
  std::uint8_t credit_class = 0;  // of packets on the context's path
  roce::QpState state = roce::QpState::reset;
  bool resident = true;        // false: `context` is in ICM
  bool evicted = false;        // `context` must be written to ICM
  std::uint64_t eviction = 0;  // order of evictions
  std::uint32_t tickets = 0;   // answers under way for this QP

  // A query of the core, and the action that waits for the answer. Answers come in the order of the queries.
  struct Question {
    enum class Kind : std::uint8_t { query, modify, modified, eviction } kind = Kind::query;
    QpCommand command{};
    QpSyndrome refused = QpSyndrome::none;
  };
  PooledList<Question> questions;

  SendRing send_ring;
  std::uint16_t send_retired = 0;  // retired blocks, modulo 2^16
  Fifo<SendWqe> send_wqes;         // WQEs that are not complete
  std::uint64_t next_message = 0;
  PacketLane requests;
  bool request_turn = false;        // waits for a transmit unit
  bool awaits_read = false;         // waits to begin the read of its next payload
  bool early_timer = false;         // the ACK timer is shorter than the QP's timeout
  std::uint8_t early_timeouts = 0;  // early timeouts since the last progress
  AdaptiveTimer adaptive;
  std::uint32_t leaving = 0;       // not RC: packets under way to the port; messages complete when these leave
  PooledList<PacketIn> responses;  // responses without an outcome of the core

  ReceiveRing receive_ring;
  PooledList<PacketIn> inbound;
  EarlyPackets early;
  bool asked = false;  // the head of `inbound` is being checked, or a lookup for it is under way
  bool looks_for_receive = false;
  bool no_receive = false;
  std::optional<bool> access_granted;
  bool absent = false;  // access is granted, but a page is not present
  enum class ReceiveMemory : std::uint8_t { unknown, present, absent };
  ReceiveMemory receive_memory{};        // memory of the receive that the head would take, if it may be on demand
  bool waits = false;                    // the head waits for the core's next event for this queue pair
  bool drops_requests = false;           // a fatal NAK is on its way: requests are ignored
  std::optional<EventType> fatal_event;  // event to raise with the fatal NAK
  bool established = false;
  struct SharedReceive {
    bool asked = false;      // a receive, or information about the queue, is requested
    std::uint64_t life = 0;  // the queue's serial number, from its receives
    std::uint32_t pd = 0;
    std::uint32_t srqn = 0;  // XRC, as `cqn`
    Cqn cqn{};
  } shared;
  // XRC: the queue that a request names.
  struct NamedQueue {
    roce::Offer::Queue found{};  // for the request that is being checked
    std::uint32_t pd = 0;
    std::uint32_t message_pd = 0;  // for the message that is being received
  } named;
  struct PendingCqe {
    CqeWrite write;
    std::uint16_t receive_index = 0;
    roce::AnswerId pending_answer = 0;
  };
  PooledList<PendingCqe> cqes;  // CQEs of complete messages with payload still under way
  PacketLane answers;
  bool answer_turn = false;
  bool mark_to_echo = false;                  // a request had a mark (CE): the next acknowledgement must echo it
  std::unique_ptr<TelemetryReturns> returns;  // nullptr: no request carried telemetry
  std::unique_ptr<ReadAcks> read_acks;        // nullptr: no READ response needs an acknowledgement

  bool held_back = false;  // waits for a timer of congestion control or of the rate limit
  Duration held_until{};   // the timer's deadline
  CongestionGate congestion;
  Pacer pacer;  // used if context.rate_limit is set

  // The request that is checked next.
  bool has_request() const { return early.due() || !inbound.empty(); }
  PacketIn& next_request() { return early.due() ? early.first().packet : inbound.front(); }
  void request_validated() { early.due() ? early.pop_due() : inbound.pop_front(); }
  // True: something under way needs the context.
  bool in_use() const {
    return tickets != 0 || leaving != 0 || request_turn || answer_turn || held_back || awaits_read;
  }
  bool reliable() const { return roce::is_reliable(transport); }
  bool connected() const { return roce::is_connected(transport); }
  // XRC receiver: receives and remote keys are those of the domain's SRQs.
  bool of_domain() const { return transport == roce::Transport::xrc_recv; }
  bool has_send() const { return context.has_send; }
  bool has_receive() const { return context.has_receive; }
  bool has_srq() const { return context.has_srq || of_domain(); }
  std::uint32_t receive_pd() const { return has_srq() ? shared.pd : context.pd; }
  std::uint32_t remote_pd() const { return of_domain() ? named.message_pd : context.pd; }
  Cqn receive_cqn() const { return of_domain() ? shared.cqn : Cqn{context.receive_cqn}; }
  bool responds() const {
    using enum roce::QpState;
    return !drops_requests && (state == rtr || state == rts || state == sqd || state == sqe);
  }
  bool sends() const { return state == roce::QpState::rts || state == roce::QpState::sqd; }
  bool flushes_sends() const { return state == roce::QpState::error || state == roce::QpState::sqe; }
  // Releases memory while the context is evicted.
  void trim() {
    send_wqes.trim();
    receive_ring.trim();
  }
  SendWqe* wqe_of(std::uint64_t message) {
    if (send_wqes.empty()) return nullptr;
    const auto index = message - send_wqes.front().message;
    return index < send_wqes.size() ? &send_wqes[index] : nullptr;
  }
};

// Argument of a tag: the pending answer, and the request's PSN for traces.
struct AnswerAt {
  static constexpr int kPsnBits = 24;
  roce::AnswerId pending_answer = 0;
  roce::Psn psn;

  std::uint64_t argument() const { return pending_answer << kPsnBits | psn.value(); }
  static AnswerAt of(std::uint64_t argument) {
    return {argument >> kPsnBits, roce::Psn(static_cast<std::uint32_t>(argument) & roce::Psn::kMask)};
  }
};

// Argument of a tag for a piece of a READ response: the packet, and the offset in it.
struct PieceAt {
  static constexpr int kOffsetBits = 13;
  std::uint64_t sequence = 0;
  std::uint32_t offset = 0;

  std::uint64_t argument() const { return sequence << kOffsetBits | offset; }
  static PieceAt of(std::uint64_t argument) {
    return {argument >> kOffsetBits, static_cast<std::uint32_t>(argument) & ((1u << kOffsetBits) - 1)};
  }
};

inline roce::Status local_status(AccessResult result) {
  return result == AccessResult::ok ? roce::Status::success : roce::Status::local_protection_error;
}
inline roce::MemoryResult memory_result(AccessResult result) {
  if (result == AccessResult::ok) return roce::MemoryResult::ok;
  return result == AccessResult::bus_error ? roce::MemoryResult::unreachable : roce::MemoryResult::refused;
}

}  // namespace rnicsim::nic
