// SPDX-License-Identifier: Apache-2.0
// The transport core in RTL: runs its clock while there is work, and translates inputs and outputs. The RTL has its own
// timers, and puts out packets before their turn to be sent.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "model/base/agenda.h"
#include "model/base/fifo.h"
#include "model/nic/capability_params.h"
#include "model/nic/engine/engine_factory.h"
#include "model/roce/qp_core.h"
#include "rtl/cosim/input_queues.h"
#include "rtl/cosim/lockstep.h"
#include "rtl/cosim/verilated_engine.h"

namespace rnicsim::rtl {

struct RtlOptions {
  bool lockstep = false;                             // check each step by the core in C++
  std::string waves;                                 // FST file for the signals; empty: none
  Duration clock{4'000};                             // period
  std::function<void(const std::string&)> mismatch;  // lockstep: called once, with the histories of both
};

class RtlCore final : public roce::QpCore {
 public:
  explicit RtlCore(const RtlOptions& options);

  void bind(roce::CoreActions& actions) override { actions_ = &actions; }
  void forget_all() override;

  std::optional<roce::Slot> open(roce::Transport transport) override;
  void close(roce::Slot slot) override { qps_[slot].open = false; }
  void reset(roce::Slot slot) override;
  void start_answers(roce::Slot slot, const roce::ResponderAttributes& attributes, roce::Psn expected) override;
  void update_answers(roce::Slot slot, const roce::ResponderAttributes& attributes) override;
  void start_sends(roce::Slot slot, const roce::SendAttributes& attributes, roce::Psn first) override;
  void update_sends(roce::Slot slot, const roce::SendAttributes& attributes, bool draining) override;
  void halt_sends(roce::Slot) override {}  // only for UC and UD
  void fail(roce::Slot slot) override;
  void query(roce::Slot slot) override;
  bool in_use(roce::Slot slot) const override;

  std::size_t post_room(roce::Slot slot) const override;
  void post(roce::Slot slot, const roce::SendRequest& request) override;
  void settle_sends(roce::Slot) override {}
  std::optional<std::uint64_t> next_send(roce::Slot slot) override;
  roce::SentRequest send(roce::Slot slot, roce::Headers& headers) override;
  void left(roce::Slot slot, bool is_request, roce::Psn end) override;
  void dropped_requests(roce::Slot slot, std::uint32_t packets) override;
  void unreadable(roce::Slot slot, std::uint64_t message, roce::Status status, std::uint32_t packets) override;
  void response(roce::Slot slot, const roce::Headers& headers, std::uint32_t payload) override;
  void response_placed(roce::Slot slot, std::uint64_t message, roce::Status status) override;
  void local_work_done(roce::Slot, std::uint64_t, roce::Status) override {}  // never called: no local work
  void expired(roce::Slot, roce::Timer, bool) override {}                    // never called: the RTL has timers

  void request(roce::Slot slot, const roce::Headers& headers, std::uint32_t payload, const roce::Offer& offer) override;
  void settle_answers(roce::Slot) override {}
  void placed(roce::Slot slot, roce::AnswerId pending_answer, roce::MemoryResult result) override;
  void atomic_executed(roce::Slot slot, roce::AnswerId pending_answer, roce::MemoryResult result,
                       std::uint64_t original) override;
  void invalidated(roce::Slot, roce::AnswerId) override {}  // never called: the RTL invalidates no keys
  std::optional<std::uint32_t> next_answer(roce::Slot slot) const override;
  roce::SentAnswer answer(roce::Slot slot, roce::Headers& headers) override;
  void answer_unreadable(roce::Slot slot, roce::Psn psn, roce::MemoryResult result, std::uint32_t packets) override;

  std::string describe(roce::Slot slot) const override;

 private:
  struct RequestPacket {
    SendRecord record;
    std::uint64_t message = 0;
  };
  // State of a queue pair from one reset to the next.
  struct Life {
    std::uint64_t number = 0;
    bool sending = false;
    // Messages and pending answers are counted here without limit; the RTL numbers them modulo 32.
    std::uint64_t posted = 0;
    std::uint64_t retired = 0;
    Fifo<Post> posts;                     // waiting for room in the window
    Fifo<RequestPacket> request_packets;  // put out, waiting for their turn
    std::uint32_t responses = 0;          // number of responses in the RTL
    bool judging = false;                 // a request is in the RTL:
    Request request;
    roce::AtomicEth operands;
    roce::AnswerId pending_answer = kPendingAnswers - 1;  // number of the last pending answer
    std::array<std::uint8_t, kPendingAnswers>
        saved{};  // by pending answer: index at which the RTL keeps an atomic's result
    Fifo<AnswerRecord> answer_packets;
    bool answers_void = false;  // until the NAK that replaces them arrives
  };
  struct Qp {
    bool open = false;
    // Commands in progress; until they are done, the RTL's records belong to the state before a reset.
    std::uint32_t send_void = 0;
    std::uint32_t answer_void = 0;
    Life life;
    bool taken() const { return open || send_void != 0 || answer_void != 0; }
  };
  // Collects the state of both sides of a queue pair.
  struct Query {
    roce::Slot slot = 0;
    std::uint64_t life = 0;
    SendRecord send;
    AnswerRecord answer;
    int parts = 0;  // number of sides received
  };

  // --- rtl_core.cpp: clock, lifetimes, queries.
  template <class Input>
  void feed(const Input& input);
  void arm_clock();
  void cycle();
  template <class Record>
  void answered(Fifo<std::shared_ptr<Query>>& asked, Record Query::*part, const Record& record);

  // --- rtl_core_sends.cpp
  void take(const SendRecord& record);
  void complete(roce::Slot slot, Life& life, const SendRecord& record);
  void dropped(roce::Slot slot, std::uint32_t packets);

  // --- rtl_core_answers.cpp
  void take(const AnswerRecord& record);
  void validated(roce::Slot slot, Life& life, const AnswerRecord& record);

  const RtlOptions options_;
  roce::CoreActions* actions_ = nullptr;
  VerilatedEngine rtl_;
  std::unique_ptr<Lockstep> reference_model_;
  InputQueues queues_;
  Alarm clock_{[this] { cycle(); }};
  std::array<Qp, kSlots> qps_;
  std::uint64_t lives_ = 0;
  Fifo<std::shared_ptr<Query>> asked_of_sends_, asked_of_answers_;
  bool placed_last_ = false;  // the message that the RTL completes was placed just before
};

// A QP engine with the RTL core.
std::unique_ptr<nic::QpEngine> make_rtl_engine(const nic::QpLimits& limits, const RtlOptions& options);
// Reduces capabilities to those of the RTL: fewer QPs, fewer READs in flight, no invalidation.
void limit_to_rtl(nic::CapabilityParams& capabilities);

}  // namespace rnicsim::rtl
