// What the engine shell keeps of a queue pair: its rings, WQEs, packets on their way and what they are for. What the
// transport knows of it is in the core.
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
  std::uint64_t epoch;                   // tells this life of the number from earlier ones
  roce::Slot slot;                       // in the core
  std::uint32_t unit;                    // that it had its last turn at
  QpContext context;
  roce::QpState state = roce::QpState::reset;
  bool resident = true;                  // else `context` is in ICM
  bool evicted = false;                  // `context` is to go there
  std::uint64_t eviction = 0;            // the order of those evicted
  std::uint32_t tickets = 0;             // answers that it waits for

  // What is to be done with the core's state, asked for in this order.
  struct Question {
    enum class Kind : std::uint8_t { query, modify, modified, eviction } kind = Kind::query;
    QpCommand command{};
    QpSyndrome refused = QpSyndrome::none;
  };
  PooledList<Question> questions;

  SendRing send_ring;
  std::uint16_t send_retired = 0;        // blocks of it, modulo 2^16
  Fifo<SendWqe> send_wqes;               // those that are not complete
  std::uint64_t next_message = 0;
  PacketLane requests;
  bool request_turn = false;             // waits for a transmit unit
  bool awaits_read = false;              // of its next payload, behind others'
  bool early_timer = false;              // the ACK timer is shorter than the QP's timeout
  std::uint8_t early_timeouts = 0;       // of these, since there was progress
  AdaptiveTimer adaptive;
  std::uint32_t leaving = 0;             // not RC: packets whose leaving the port completes their messages
  PooledList<PacketIn> responses;        // that the core has not told of

  ReceiveRing receive_ring;
  PooledList<PacketIn> inbound;
  EarlyPackets early;
  bool asked = false;                    // the head of it is being judged, or something is looked up for it
  bool looks_for_receive = false;
  bool no_receive = false;
  std::optional<bool> access_granted;
  bool absent = false;                   // granted, but a page of it is not there
  enum class ReceiveMemory : std::uint8_t { unknown, present, absent };
  ReceiveMemory receive_memory{};        // of the receive that the head of it would take, where it may be on demand
  bool waits = false;                    // the head, until the core has done something else for this queue pair
  bool deaf = false;                     // a fatal NAK is on its way
  std::optional<EventType> fatal_event;  // behind it
  bool established = false;
  struct SharedReceive {
    bool asked = false;                  // an entry is on its way, or what is to be known of its queue
    std::uint64_t life = 0;              // of the queue, as its entries told
    std::uint32_t pd = 0;
    std::uint32_t srqn = 0;              // XRC, as the next
    Cqn cqn{};
  } shared;
  // XRC: the queue that a request names.
  struct NamedQueue {
    roce::Offer::Queue found{};          // of the request that is judged
    std::uint32_t pd = 0;
    std::uint32_t message_pd = 0;        // of the message that is coming in
  } named;
  struct OwedCqe {
    CqeWrite write;
    std::uint16_t receive_index = 0;
    roce::OwedId owed = 0;
  };
  PooledList<OwedCqe> cqes;              // of messages that are whole, and not all of their payload in memory
  PacketLane answers;
  bool answer_turn = false;
  bool mark_to_echo = false;             // a request had a mark (CE), and the next acknowledgement is to tell that
  std::unique_ptr<TelemetryReturns> returns;  // nullptr: no request brought telemetry
  std::unique_ptr<ReadAcks> read_acks;   // nullptr: nothing was sent or came that wants one

  bool held_back = false;                // by congestion control or its rate, until a timer expires
  CongestionGate congestion;
  Pacer pacer;                           // with context.rate_limit

  // The request that is judged next.
  bool has_request() const { return early.due() || !inbound.empty(); }
  PacketIn& next_request() { return early.due() ? early.first().packet : inbound.front(); }
  void request_judged() { early.due() ? early.pop_due() : inbound.pop_front(); }
  // Something that is under way needs the context.
  bool in_use() const {
    return tickets != 0 || leaving != 0 || request_turn || answer_turn || held_back || awaits_read;
  }
  bool reliable() const { return roce::is_reliable(transport); }
  bool connected() const { return roce::is_connected(transport); }
  // Its receives are those of the SRQs of its domain, and so are the keys that its peer may name.
  bool of_domain() const { return transport == roce::Transport::xrc_recv; }
  bool has_send() const { return context.has_send; }
  bool has_receive() const { return context.has_receive; }
  bool has_srq() const { return context.has_srq || of_domain(); }
  std::uint32_t receive_pd() const { return has_srq() ? shared.pd : context.pd; }
  std::uint32_t remote_pd() const { return of_domain() ? named.message_pd : context.pd; }
  Cqn receive_cqn() const { return of_domain() ? shared.cqn : Cqn{context.receive_cqn}; }
  bool responds() const {
    using enum roce::QpState;
    return !deaf && (state == rtr || state == rts || state == sqd || state == sqe);
  }
  bool sends() const { return state == roce::QpState::rts || state == roce::QpState::sqd; }
  bool flushes_sends() const { return state == roce::QpState::error || state == roce::QpState::sqe; }
  // Evicted, it keeps no more than what it is about.
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

// A tag's argument: what is owed, and the request's PSN, for who follows it.
struct OwedAt {
  static constexpr int kPsnBits = 24;
  roce::OwedId owed = 0;
  roce::Psn psn;

  std::uint64_t argument() const { return owed << kPsnBits | psn.value(); }
  static OwedAt of(std::uint64_t argument) {
    return {argument >> kPsnBits, roce::Psn(static_cast<std::uint32_t>(argument) & roce::Psn::kMask)};
  }
};

// The same of a READ response's piece: the packet, and where in it.
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
