// The transport core in RTL: runs its clock as long as there is something to do, and translates. Its timers are its
// own, and it puts packets out ahead of their turns.
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
  bool lockstep = false;                 // the core in C++ as referee beside it
  std::string waves;                     // FST file of its signals; empty: none
  Duration clock{4'000};                 // period
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
  void halt_sends(roce::Slot) override {}  // of UC and UD alone
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
  void local_work_done(roce::Slot, std::uint64_t, roce::Status) override {}  // no local work is ever asked for
  void expired(roce::Slot, roce::Timer, bool) override {}                    // nor timers

  void request(roce::Slot slot, const roce::Headers& headers, std::uint32_t payload,
               const roce::Offer& offer) override;
  void settle_answers(roce::Slot) override {}
  void placed(roce::Slot slot, roce::OwedId owed, roce::MemoryResult result) override;
  void carried_out(roce::Slot slot, roce::OwedId owed, roce::MemoryResult result, std::uint64_t original) override;
  void invalidated(roce::Slot, roce::OwedId) override {}  // nor keys
  std::optional<std::uint32_t> next_answer(roce::Slot slot) const override;
  roce::SentAnswer answer(roce::Slot slot, roce::Headers& headers) override;
  void answer_unreadable(roce::Slot slot, roce::Psn psn, roce::MemoryResult result, std::uint32_t packets) override;

  std::string describe(roce::Slot slot) const override;

 private:
  struct RequestPacket {
    SendRecord record;
    std::uint64_t message = 0;
  };
  // A queue pair's life in one of the RTL's places.
  struct Life {
    std::uint64_t number = 0;
    bool sending = false;
    // Messages and answers owed are counted here; the RTL numbers those that it has modulo 32.
    std::uint64_t posted = 0;
    std::uint64_t retired = 0;
    Fifo<Post> posts;                    // for which the window has no room
    Fifo<RequestPacket> request_packets; // put out, and their turn has not come
    std::uint32_t responses = 0;         // to be judged
    bool judging = false;                // a request:
    Request request;
    roce::AtomicEth operands;
    roce::OwedId owed = kOwed - 1;       // the last
    std::array<std::uint8_t, kOwed> saved{};  // where the RTL keeps the result of an atomic that is owed
    Fifo<AnswerRecord> answer_packets;
    bool answers_void = false;           // until the NAK comes that takes their place
  };
  struct Qp {
    bool open = false;
    // Commands under way, before which what the RTL tells is of an earlier life.
    std::uint32_t send_void = 0;
    std::uint32_t answer_void = 0;
    Life life;
    bool taken() const { return open || send_void != 0 || answer_void != 0; }
  };
  // What both sides know of a queue pair.
  struct Query {
    roce::Slot slot = 0;
    std::uint64_t life = 0;
    SendRecord send;
    AnswerRecord answer;
    int parts = 0;                       // that are here
  };

  // --- rtl_core.cpp: the clock, lives, queries.
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
  void judged(roce::Slot slot, Life& life, const AnswerRecord& record);

  const RtlOptions options_;
  roce::CoreActions* actions_ = nullptr;
  VerilatedEngine rtl_;
  std::unique_ptr<Lockstep> referee_;
  InputQueues queues_;
  Alarm clock_{[this] { cycle(); }};
  std::array<Qp, kSlots> qps_;
  std::uint64_t lives_ = 0;
  Fifo<std::shared_ptr<Query>> asked_of_sends_, asked_of_answers_;
  bool placed_last_ = false;             // what the RTL completes now was placed right before
};

// The QP engine around it.
std::unique_ptr<nic::QpEngine> make_rtl_engine(const nic::QpLimits& limits, const RtlOptions& options);
// What the RTL can do, of what is asked: fewer QPs, fewer READs in flight, no invalidation.
void limit_to_rtl(nic::CapabilityParams& capabilities);

}  // namespace rnicsim::rtl
