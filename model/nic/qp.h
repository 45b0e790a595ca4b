// What the model engine keeps of a queue pair.
#pragma once

#include <algorithm>
#include <optional>

#include "model/base/fifo.h"
#include "model/base/pooled_list.h"
#include "model/nic/packet_lane.h"
#include "model/nic/qp_context.h"
#include "model/nic/qp_engine.h"
#include "model/nic/qp_responder.h"
#include "model/nic/receive_ring.h"
#include "model/nic/send_ring.h"
#include "model/roce/completer.h"
#include "model/roce/requester.h"

namespace rnicsim::nic {

// What the responder owes, in order: each waits for its payload to reach memory.
struct Response {
  enum class Kind : std::uint8_t { silent, acknowledge, nak, read, atomic };
  Kind kind = Kind::silent;
  std::uint64_t sequence = 0;
  roce::Psn psn;
  std::uint8_t syndrome = roce::Aeth::kAck | roce::Aeth::kNoCredits;
  std::uint32_t msn = 0;
  bool placing = false;                  // its payload, atomic or invalidation is under way
  bool to_receive = false;               // its payload belongs to a receive WQE
  bool placed = false;
  AccessResult result = AccessResult::ok;
  std::optional<CqeWrite> cqe;
  std::uint16_t receive_index = 0;
  bool duplicate = false;                // read, atomic: answered once already
  bool fatal = false;                    // nak: the QP goes to error behind it
  std::optional<abi::EventType> event;
  std::optional<roce::Rkey> invalidate;  // before the CQE
  roce::RemoteRange range;               // read
  std::uint32_t next_packet = 0;
  std::optional<roce::AtomicEth> atomic; // to be carried out, when what is before it has reached memory
  bool is_swap = false;
  std::uint64_t original = 0;
};

struct Qp {
  Qp(Qpn number, roce::Transport type, std::uint64_t birth)
      : qpn(number), transport(type), epoch(birth), responder(type) {}

  Qpn qpn;
  const roce::Transport transport;
  std::uint64_t epoch;                   // tells this life of the number from earlier ones
  abi::Qpc context;
  roce::QpState state = roce::QpState::reset;
  bool resident = true;                  // else `context` is in ICM
  bool evicted = false;                  // `context` is to go there
  std::uint64_t eviction = 0;            // the order of those evicted
  std::uint32_t tickets = 0;             // answers that it waits for
  std::uint8_t ack_timeout = 0;          // the context's `timeout`, which the timer needs at any time

  roce::SendWindow window;
  roce::Requester requester{window};
  roce::Completer completer{window};
  QpResponder responder;

  SendRing send_ring;
  std::uint16_t send_retired = 0;        // blocks of it, modulo 2^16
  Fifo<SendWqe> send_wqes;               // those of the window's messages
  std::uint64_t next_message = 0;
  PacketLane requests;
  bool request_turn = false;             // waits at its transmit unit
  bool ack_timer = false;
  roce::Psn left_psn;                    // one past the last request that has left the port, since all was sent again
  bool drain_announced = false;
  std::uint32_t leaving = 0;             // UC, UD: packets whose leaving the port completes their messages

  ReceiveRing receive_ring;
  PooledList<PacketIn> inbound;
  struct SharedReceive {
    bool asked = false;                  // an entry is on its way
    std::uint64_t life = 0;              // of the queue, as its entries told
    std::uint32_t pd = 0;
  } shared;
  bool inbound_waits = false;            // the head waits for a receive WQE or a key check
  bool deaf = false;                     // a fatal NAK is on its way
  bool established = false;
  roce::Offer offer;                     // for the head of `inbound`
  PooledList<Response> responses;
  std::uint64_t next_response = 0;
  std::uint32_t rd_atomic_pending = 0;
  std::uint32_t duplicates_pending = 0;
  std::uint32_t atomics_pending = 0;     // accepted, not carried out
  PacketLane answers;
  bool answer_turn = false;

  // Something that is under way needs the context.
  bool in_use() const { return tickets != 0 || leaving != 0 || request_turn || answer_turn; }
  bool reliable() const { return transport == roce::Transport::rc; }
  bool has_send() const { return (context.flags & abi::Qpc::kHasSend) != 0; }
  bool has_receive() const { return (context.flags & abi::Qpc::kHasReceive) != 0; }
  bool has_srq() const { return (context.flags & abi::Qpc::kHasSrq) != 0; }
  std::uint32_t receive_pd() const { return has_srq() ? shared.pd : std::uint32_t(context.pd); }
  std::uint32_t mtu() const { return roce::mtu_bytes(context.path_mtu); }
  bool responds() const {
    using enum roce::QpState;
    return !deaf && (state == rtr || state == rts || state == sqd || state == sqe);
  }
  bool sends() const { return state == roce::QpState::rts || state == roce::QpState::sqd; }
  bool flushes_sends() const { return state == roce::QpState::error || state == roce::QpState::sqe; }
  bool draining() const { return state == roce::QpState::sqd && !requester.drained(); }
  std::uint32_t& pending(bool duplicate) { return duplicate ? duplicates_pending : rd_atomic_pending; }
  // Evicted, it keeps no more than what it is about.
  void trim() {
    window.messages.trim();
    send_wqes.trim();
    receive_ring.trim();
  }
  Response* response(std::uint64_t sequence) {
    const auto found = std::ranges::find(responses, sequence, &Response::sequence);
    return found == responses.end() ? nullptr : &*found;
  }
  SendWqe* wqe_of(std::uint64_t message) {
    if (send_wqes.empty()) return nullptr;
    const auto index = message - send_wqes.front().message;
    return index < send_wqes.size() ? &send_wqes[index] : nullptr;
  }
};

}  // namespace rnicsim::nic
