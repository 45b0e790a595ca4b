// The RTL's referee. The transport core (model/roce) does what the RTL says it did, in the RTL's order: which queue
// pair sends, when a timer fires, when acknowledgements coalesce, that something must wait, are choices that it is free
// to make, and the referee checks that they were legal. All else must be the same: packets, completions, verdicts,
// contexts.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "model/roce/completer.h"
#include "model/roce/requester.h"
#include "model/roce/responder.h"
#include "rtl/cosim/transactions.h"

namespace rnicsim::rtl {

class VerilatedEngine;

class Lockstep {
 public:
  // Records that the engine put out at that time (in ticks), with the inputs that they are of. A mismatch
  // is told once: by text(), with the histories of both.
  void send(const SendRecord& record, const VerilatedEngine& engine, std::uint64_t now);
  void answer(const AnswerRecord& record, const VerilatedEngine& engine, std::uint64_t now);
  // Everything is forgotten.
  void reset();
  // Somebody else has found a fault.
  void complain(const std::string& text) { mismatch_ = "lockstep: " + text + "\n"; }

  bool failed() const { return !mismatch_.empty(); }
  const std::string& mismatch() const { return mismatch_; }

 private:
  static constexpr std::size_t kHistory = 24;
  // What an operation was about, its record, and the record as it should be.
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
    roce::SendWindow window;
    roce::Requester requester{window};
    roce::Completer completer{window};
    std::uint64_t posted = 0;
    std::uint64_t retired = 0;
    bool alive = false;
    bool failing = false;                // what is left is flushed
    bool draining = false;
    bool drain_told = false;
    std::uint8_t timeout = 0;
    std::uint64_t since = 0;             // when something last was answered for, or sent again
    std::uint64_t rnr_until = 0;
    std::deque<SendStep> history;
  };
  struct Owed {
    enum class Kind : std::uint8_t { silent, acknowledge, nak, read, atomic };
    Kind kind = Kind::silent;
    std::uint8_t index = 0;
    roce::Psn psn;
    std::uint32_t msn = 0;
    std::uint8_t syndrome = 0;
    bool fatal = false;
    bool to_receive = false;
    bool has_cqe = false;                // not told yet
    bool placed = false;
    Result result = Result::ok;
    roce::RemoteRange range;             // read
    std::uint32_t next_packet = 0;
    std::uint64_t original = 0;          // atomic
  };
  struct AnswerSide {
    roce::Responder responder;
    bool alive = false;
    bool deaf = false;
    std::uint32_t remote_qpn = 0;
    std::uint32_t mtu = 0;
    std::uint8_t next_owed = 0;
    std::list<Owed> owed;
    std::list<Owed> again;               // to be answered again, in any order
    std::deque<AnswerStep> history;

    std::uint32_t rd_atomic_pending() const;
    void fall_silent();                  // nothing is answered any more
  };

  // The record as it should be.
  SendRecord send_core(SendSide& side, const SendRecord& rtl, const VerilatedEngine& engine, std::uint64_t now);
  SendRecord control(SendSide& side, SendRecord core, const SendControl& control);
  SendRecord post(SendSide& side, SendRecord core, const Post& post);
  SendRecord packet(SendSide& side, SendRecord core);
  SendRecord response(SendSide& side, SendRecord core, const Response& response, std::uint64_t now);
  SendRecord complete(SendSide& side, SendRecord core);
  AnswerRecord answer_core(AnswerSide& side, const AnswerRecord& rtl, const VerilatedEngine& engine);
  AnswerRecord control(AnswerSide& side, AnswerRecord core, const AnswerControl& control);
  AnswerRecord request(AnswerSide& side, AnswerRecord core, const Request& request);
  AnswerRecord accept(AnswerSide& side, AnswerRecord core, const Request& request, const roce::Verdict& verdict);
  AnswerRecord event(AnswerSide& side, AnswerRecord core, const AnswerEvent& event);
  AnswerRecord packet(AnswerSide& side, AnswerRecord core);
  AnswerRecord data_packet(AnswerRecord core, const AnswerSide& side, const Owed& owed, bool duplicate);
  AnswerRecord failed_read(AnswerSide& side, AnswerRecord core, const AnswerEvent& event);
  AnswerRecord complete(AnswerSide& side, AnswerRecord core);
  AnswerRecord failed(AnswerSide& side, AnswerRecord core);
  // What the opcode says; one that is not of the engine counts as one of another transport.
  static const roce::OpcodeInfo& row_of(std::uint8_t opcode);
  // A choice that was not the RTL's to make.
  void illegal(const char* why);
  template <class One>
  void compare(std::deque<One>& history, One&& last);

  std::array<std::unique_ptr<SendSide>, kSlots> sends_;
  std::array<std::unique_ptr<AnswerSide>, kSlots> answers_;
  const char* illegal_ = nullptr;
  std::string mismatch_;
};

}  // namespace rnicsim::rtl
