// SPDX-License-Identifier: Apache-2.0
// The RTL's reference model. Feeds the transport core in C++ (model/roce) with the same events, and makes it act in the
// RTL's order. Which queue pair sends, when a timer expires, when acknowledgements coalesce and when an input must wait
// are free choices of the RTL; the reference model checks that each is legal. Everything else must be equal: packets,
// completions, verdicts, contexts.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "model/roce/qp_core.h"
#include "model/roce/responders/answer_side.h"
#include "model/roce/send_side.h"
#include "rtl/cosim/transactions.h"

namespace rnicsim::rtl {

class VerilatedEngine;

class Lockstep final : private roce::CoreActions {
 public:
  // Compares a record that the engine put out at time `now` (in ticks) with the core. A mismatch is reported once, by
  // mismatch(), with the histories of both.
  void send(const SendRecord& record, const VerilatedEngine& engine, std::uint64_t now);
  void answer(const AnswerRecord& record, const VerilatedEngine& engine, std::uint64_t now);
  // Clears all state.
  void reset();
  // Reports a fault that another check found.
  void complain(const std::string& text) { mismatch_ = "lockstep: " + text + "\n"; }

  bool failed() const { return !mismatch_.empty(); }
  const std::string& mismatch() const { return mismatch_; }

 private:
  static constexpr std::size_t kHistory = 24;
  // Input of an operation, its record, and the record that the core expects.
  template <class Record, class... Inputs>
  struct Step {
    using Input = std::variant<std::monostate, Inputs...>;
    std::uint64_t now;
    Input input;
    Record rtl;
    Record core;
  };
  using SendStep = Step<SendRecord, SendControl, Post, Response, SendEvent>;
  using AnswerStep = Step<AnswerRecord, AnswerControl, Request, AnswerEvent>;

  struct SendSide {
    SendSide(roce::Slot slot, roce::CoreActions& actions) : core(slot, actions, kMessages) {}
    roce::SendSide core;
    std::uint64_t posted = 0;
    std::uint64_t retired = 0;
    bool alive = false;
    bool failing = false;  // remaining messages are flushed
    // Deadlines of running timers.
    std::optional<std::uint64_t> ack_due, rnr_due;
    std::deque<SendRecord> to_come;  // expected completions, and the end of a drain
  };
  struct AnswerSide {
    AnswerSide(roce::Slot slot, roce::CoreActions& actions) : core(slot, actions, roce::Transport::rc) {}
    roce::AnswerSide core;
    bool alive = false;
    bool drops_requests = false;
    roce::ResponderAttributes attributes;
    roce::AnswerId next_answer_id = 0;
    struct ToCome {
      roce::AnswerId pending_answer;
      AnswerRecord record;
    };
    std::deque<ToCome> to_come;  // expected completions, and a failed placement
    // READs and atomics that may be repeated, in any order; the RTL need not repeat them.
    struct Again {
      roce::Verdict verdict;
      std::uint32_t next_packet = 0;
    };
    std::list<Again> again;
  };
  // A slot's two sides, with their histories.
  struct Slot {
    std::unique_ptr<SendSide> sends;
    std::unique_ptr<AnswerSide> answers;
    std::deque<SendStep> sends_before;
    std::deque<AnswerStep> answers_before;
  };

  // These functions return the record that the core expects.
  SendRecord send_core(SendSide& side, const SendRecord& rtl, const VerilatedEngine& engine);
  SendRecord control(SendSide& side, SendRecord core, const SendControl& control);
  SendRecord post(SendSide& side, SendRecord core, const Post& post);
  SendRecord packet(SendSide& side, SendRecord core);
  SendRecord response(SendSide& side, SendRecord core, const Response& response);
  SendRecord event(SendSide& side, SendRecord core, const SendEvent& event);
  SendRecord timeout(SendSide& side, SendRecord core);
  SendRecord next_of(SendSide& side, SendRecord core);
  AnswerRecord answer_core(AnswerSide& side, const AnswerRecord& rtl, const VerilatedEngine& engine);
  AnswerRecord control(AnswerSide& side, AnswerRecord core, const AnswerControl& control);
  AnswerRecord request(AnswerSide& side, AnswerRecord core, const Request& request);
  AnswerRecord accept(AnswerSide& side, AnswerRecord core, const Request& request, roce::Verdict verdict);
  AnswerRecord event(AnswerSide& side, AnswerRecord core, const AnswerEvent& event);
  AnswerRecord packet(AnswerSide& side, AnswerRecord core);
  AnswerRecord packet_again(AnswerSide& side, AnswerRecord core);
  AnswerRecord failed_read(AnswerSide& side, AnswerRecord core, const AnswerEvent& event);
  AnswerRecord next_of(AnswerSide& side, AnswerRecord core);

  // --- Actions of the core in C++.
  void begin_step() override {}
  void end_step() override {}
  void moved(roce::Slot, bool) override {}
  void posted(roce::Slot slot, std::uint64_t message, roce::Psn first, std::uint32_t packets) override;
  void responded(roce::Slot slot, const roce::ResponseOutcome& outcome, roce::Psn oldest) override;
  void ack_timed_out(roce::Slot slot, bool rewound) override;
  void completed(roce::Slot slot, std::uint64_t message, roce::Status status, bool placed_last) override;
  void local_work(roce::Slot, std::uint64_t) override {}
  void drained(roce::Slot slot) override;
  void arm(roce::Slot slot, roce::Timer timer, std::uint8_t code, bool few) override;
  void cancel(roce::Slot slot, roce::Timer timer) override;
  std::optional<bool> granted(roce::Slot, const roce::Verdict&) override { return std::nullopt; }
  void validated(roce::Slot, const roce::Verdict&) override {}
  void start_atomic(roce::Slot, roce::AnswerId, roce::Psn, const roce::AtomicEth&, bool, std::uint32_t) override {}
  void invalidate(roce::Slot, roce::AnswerId, roce::Rkey) override {}
  void receive_completed(roce::Slot slot, roce::AnswerId pending_answer) override;
  void placement_failed(roce::Slot slot, const roce::PlacementFailure& failure) override;
  void told(roce::Slot, const roce::CoreState&) override {}

  CoreActions& actions() { return *this; }
  // Row of the opcode; an opcode that the engine does not know gets the row of another transport.
  static const roce::OpcodeInfo& row_of(std::uint8_t opcode);
  // Notes a choice that the RTL was not free to make.
  void illegal(const char* why);
  template <class One>
  void compare(std::deque<One>& history, One&& last);

  std::array<Slot, kSlots> slots_;
  std::uint64_t now_ = 0;
  SendRecord told_;  // expected record, filled by the core's actions
  const char* illegal_ = nullptr;
  std::string mismatch_;
};

}  // namespace rnicsim::rtl
