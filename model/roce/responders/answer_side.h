// SPDX-License-Identifier: Apache-2.0
// The answers of one queue pair: the pending answers of its responder, in order. An answer is sent when the payload of
// its request has reached memory (IBTA vol 1, 9.5 and 9.7).
#pragma once

#include <cstdint>
#include <optional>

#include "model/base/pooled_list.h"
#include "model/roce/qp_core.h"
#include "model/roce/responders/qp_responder.h"

namespace rnicsim::roce {

class AnswerSide {
 public:
  AnswerSide(Slot slot, CoreActions& actions, Transport transport)
      : slot_(slot), actions_(actions), transport_(transport), responder_(transport) {}
  AnswerSide(const AnswerSide&) = delete;
  AnswerSide& operator=(const AnswerSide&) = delete;

  void start(const ResponderAttributes& attributes, Psn expected);
  void update(const ResponderAttributes& attributes);
  void fail() { pending_answers_.clear(); }

  [[gnu::noinline]] void request(const Headers& headers, std::uint32_t payload, const Offer& offer) {
    if (must_wait(payload)) return actions_.validated(slot_, Verdict{Verdict::Kind::busy});
    auto verdict = validate(headers, payload, offer);
    if (verdict.kind == Verdict::Kind::wants_access)
      if (const auto known = actions_.granted(slot_, verdict))
        verdict = validate_granted(headers, payload, offer, *known);
    accept(verdict, payload);
    actions_.validated(slot_, verdict);
  }
  // An atomic is ordered before the writes that follow it: a request with payload waits for pending atomics.
  bool must_wait(std::uint32_t payload) const { return atomics_pending_ != 0 && payload != 0; }
  // request() in two steps: validate() changes no pending answer; accept() adds the answer of the verdict.
  Verdict validate(const Headers& headers, std::uint32_t payload, Offer offer);
  void accept(Verdict& verdict, std::uint32_t payload);
  // Completes, in order, answers whose payload is in memory. Answers with a packet stay at the head until their turn.
  void settle();
  // Like settle(), for a responder whose receives do not wait until earlier acknowledgements are sent.
  void settle_ahead();
  void placed(AnswerId pending_answer, MemoryResult result);
  void atomic_executed(AnswerId pending_answer, MemoryResult result, std::uint64_t original);
  void invalidated(AnswerId pending_answer);
  std::optional<std::uint32_t> next() const;
  // Writes the headers of the next answer. `chosen`: PSN of the answer, if the caller chooses it. One acknowledgement
  // stands for all acknowledgements before it.
  SentAnswer answer(Headers& headers, std::optional<Psn> chosen = {});
  void unreadable(Psn psn, MemoryResult result);

  const QpResponder& responder() const { return responder_; }
  // Number of pending answers, without acknowledgements at the head that wait only for their turn.
  std::size_t pending_answer() const;
  std::optional<AnswerId> oldest() const {
    return pending_answers_.empty() ? std::nullopt : std::optional(pending_answers_.front().id);
  }

 private:
  struct PendingAnswer {
    enum class Kind : std::uint8_t { silent, acknowledge, nak, read, atomic };
    Kind kind = Kind::silent;
    AnswerId id = 0;
    Psn psn;
    std::uint8_t syndrome = Aeth::kAck | Aeth::kNoCredits;
    std::uint32_t msn = 0;
    bool waits = false;              // the payload, atomic or invalidation is under way
    bool to_receive = false;         // the payload belongs to a receive WQE
    bool completes_receive = false;  // and its completion was not reported yet
    bool duplicate = false;          // read, atomic: a repeated answer
    bool fatal = false;              // nak: the queue pair enters the error state after it
    bool is_swap = false;
    MemoryResult result = MemoryResult::ok;
    std::optional<Rkey> invalidate;  // key to invalidate before the receive completes
    RemoteRange range;               // read
    std::uint32_t next_packet = 0;
    std::uint32_t domain = 0;         // XRC: read, atomic: domain of the key
    std::optional<AtomicEth> atomic;  // to be executed when all earlier payload is in memory
    std::uint64_t original = 0;

    bool has_data() const { return kind == Kind::read || kind == Kind::atomic; }
  };

  bool reliable() const { return is_reliable(transport_); }
  Verdict validate_granted(const Headers& headers, std::uint32_t payload, Offer offer, bool granted) {
    offer.access_granted = granted;
    return validate(headers, payload, offer);
  }
  [[gnu::noinline]] void order_data();
  void order_again();
  void start_atomics();
  void pass_over_acknowledgements(std::optional<Psn> chosen);
  [[gnu::noinline]] bool place_failed(PooledList<PendingAnswer>::iterator pending_answer);
  std::uint32_t packets_of(const PendingAnswer& pending_answer) const;
  bool requests_rest(const PendingAnswer& again, const PendingAnswer& read) const;
  PendingAnswer* find(AnswerId id);
  SentAnswer read_packet(Headers& headers);
  void put(Headers& headers, Opcode opcode, Psn psn, const PendingAnswer& pending_answer) const;
  std::uint32_t& pending(bool duplicate) { return duplicate ? duplicates_pending_ : rd_atomic_pending_; }

  const Slot slot_;
  CoreActions& actions_;
  const Transport transport_;
  QpResponder responder_;
  Qpn remote_;
  std::uint32_t mtu_ = 0;
  PooledList<PendingAnswer> pending_answers_;
  AnswerId next_answer_id_ = 0;
  std::uint32_t rd_atomic_pending_ = 0;
  std::uint32_t duplicates_pending_ = 0;
  std::uint32_t atomics_pending_ = 0;  // accepted and not executed
  bool wants_access_ = false;          // the last verdict was wants_access, and all other checks passed
};

}  // namespace rnicsim::roce
