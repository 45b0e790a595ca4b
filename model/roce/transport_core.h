// SPDX-License-Identifier: Apache-2.0
// The core in C++: acts within the call of each event; the shell runs its timers.
#pragma once

#include <memory>
#include <vector>

#include "model/roce/qp_core.h"
#include "model/roce/responders/answer_side.h"
#include "model/roce/send_side.h"

namespace rnicsim::roce {

class TransportCore final : public QpCore {
 public:
  // `sends_ahead`: messages of a queue pair that the core stores until their turn.
  explicit TransportCore(std::size_t sends_ahead) : sends_ahead_(sends_ahead) {}

  void bind(CoreActions& actions) override { actions_ = &actions; }
  void forget_all() override;

  std::optional<Slot> open(Transport transport) override;
  void close(Slot slot) override;
  void reset(Slot slot) override;
  void start_answers(Slot slot, const ResponderAttributes& attributes, Psn expected) override {
    of(slot).answers.start(attributes, expected);
  }
  void update_answers(Slot slot, const ResponderAttributes& attributes) override {
    of(slot).answers.update(attributes);
  }
  void start_sends(Slot slot, const SendAttributes& attributes, Psn first) override {
    of(slot).sends.start(attributes, first);
  }
  void update_sends(Slot slot, const SendAttributes& attributes, bool draining) override {
    of(slot).sends.update(attributes, draining);
  }
  void halt_sends(Slot slot) override { of(slot).sends.halt(); }
  void fail(Slot slot) override;
  void query(Slot slot) override { actions_->told(slot, state(slot)); }
  bool in_use(Slot) const override { return false; }

  std::size_t post_room(Slot slot) const override { return of(slot).sends.post_room(); }
  void post(Slot slot, const SendRequest& request) override { of(slot).sends.post(request); }
  void settle_sends(Slot slot) override { of(slot).sends.settle(); }
  std::optional<std::uint64_t> next_send(Slot slot) override { return of(slot).sends.next(); }
  bool sends_again(Slot slot) const override { return of(slot).sends.sends_again(); }
  SentRequest send(Slot slot, Headers& headers) override { return of(slot).sends.send(headers); }
  void left(Slot slot, bool is_request, Psn end) override {
    if (is_request) of(slot).sends.left(end);
  }
  void dropped_requests(Slot, std::uint32_t) override {}
  void unreadable(Slot slot, std::uint64_t message, Status status, std::uint32_t) override {
    of(slot).sends.unreadable(message, status);
  }
  void response(Slot slot, const Headers& headers, std::uint32_t payload) override {
    of(slot).sends.response(headers, payload);
  }
  void response_placed(Slot slot, std::uint64_t message, Status status) override {
    of(slot).sends.placed(message, status);
  }
  void local_work_done(Slot slot, std::uint64_t message, Status status) override {
    of(slot).sends.local_work_done(message, status);
  }
  void expired(Slot slot, Timer timer, bool early) override { of(slot).sends.expired(timer, early); }

  void request(Slot slot, const Headers& headers, std::uint32_t payload, const Offer& offer) override {
    of(slot).answers.request(headers, payload, offer);
  }
  void settle_answers(Slot slot) override { of(slot).answers.settle(); }
  void placed(Slot slot, AnswerId pending_answer, MemoryResult result) override {
    of(slot).answers.placed(pending_answer, result);
  }
  void atomic_executed(Slot slot, AnswerId pending_answer, MemoryResult result, std::uint64_t original) override {
    of(slot).answers.atomic_executed(pending_answer, result, original);
  }
  void invalidated(Slot slot, AnswerId pending_answer) override { of(slot).answers.invalidated(pending_answer); }
  std::optional<std::uint32_t> next_answer(Slot slot) const override { return of(slot).answers.next(); }
  SentAnswer answer(Slot slot, Headers& headers) override { return of(slot).answers.answer(headers); }
  void answer_unreadable(Slot slot, Psn psn, MemoryResult result, std::uint32_t) override {
    of(slot).answers.unreadable(psn, result);
  }

  std::string describe(Slot slot) const override;

 private:
  struct Qp {
    Qp(Slot slot, CoreActions& actions, Transport type, std::size_t sends_ahead)
        : transport(type), sends(slot, actions, sends_ahead), answers(slot, actions, type) {}
    const Transport transport;
    SendSide sends;
    AnswerSide answers;
  };

  Qp& of(Slot slot) { return *qps_[slot]; }
  const Qp& of(Slot slot) const { return *qps_[slot]; }
  CoreState state(Slot slot) const;

  const std::size_t sends_ahead_;
  CoreActions* actions_ = nullptr;
  std::vector<std::unique_ptr<Qp>> qps_;
  std::vector<Slot> free_;
};

}  // namespace rnicsim::roce
