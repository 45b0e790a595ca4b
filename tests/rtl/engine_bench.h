// SPDX-License-Identifier: Apache-2.0
// One QP engine driven by hand, with the reference model and with a gated clock, as a NIC's shell gates the clock: it
// runs while input is offered, the engine is busy, or a timer is due.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/roce/opcode.h"
#include "rtl/cosim/input_queues.h"
#include "rtl/cosim/lockstep.h"
#include "rtl/cosim/verilated_engine.h"

namespace rnicsim::rtl::test {

inline constexpr std::uint8_t kAck = 0x1f;
inline constexpr std::uint32_t kMaxMessage = 1u << 31;

// Start of a QP with a path MTU of 256 bytes (mtu code 1).
inline SendControl send_start(std::uint8_t slot, std::uint32_t psn) {
  return {.slot = slot,
          .kind = Control::start,
          .psn = psn,
          .mtu = 1,
          .remote_qpn = 0x100u + slot,
          .max_rd_atomic = 4,
          .retry_count = 7,
          .rnr_retry = 7,
          .timeout = 4};
}
inline AnswerControl answer_start(std::uint8_t slot, std::uint32_t psn) {
  return {.slot = slot,
          .kind = Control::start,
          .psn = psn,
          .mtu = 1,
          .remote_qpn = 0x100u + slot,
          .allow_write = true,
          .allow_read = true,
          .allow_atomic = true,
          .max_dest_rd_atomic = 4,
          .min_rnr_timer = 12,
          .max_message = kMaxMessage};
}
inline std::uint8_t code(roce::Opcode opcode) { return static_cast<std::uint8_t>(opcode); }

class Bench {
 public:
  Bench() = default;
  // A mismatch found by the reference model, or a failed assertion of the engine, fails the test.
  ~Bench() {
    EXPECT_EQ(reference_model.mismatch(), "");
    EXPECT_EQ(engine.failures(), 0) << "an assertion of the engine failed";
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  template <class... Inputs>
  void push(const Inputs&... inputs) {
    (queues.push(inputs), ...);
  }
  void start(const SendControl& control) {
    push(SendControl{.slot = control.slot, .kind = Control::reset}, control);
    settle();
    take_sends();
  }
  void start(const AnswerControl& control) {
    push(AnswerControl{.slot = control.slot, .kind = Control::reset}, control);
    settle();
    take_answers();
  }

  bool sleeps() const {
    return queues.empty() && !engine.offering() && !engine.busy() && !(engine.wake() && *engine.wake() <= now);
  }
  void cycle() {
    queues.offer(engine);
    const auto outputs = engine.begin_cycle(now, takes_sends, takes_answers);
    if (outputs.send) {
      reference_model.send(*outputs.send, engine, now);
      sends.push_back(*outputs.send);
    }
    if (outputs.answer) {
      reference_model.answer(*outputs.answer, engine, now);
      answers.push_back(*outputs.answer);
    }
    engine.end_cycle();
  }
  void cycles(int count) {
    for (; count != 0; --count) cycle();
  }
  // Runs the clock until the engine is idle.
  void settle() {
    int left = 200'000;
    while (!sleeps() && --left != 0) cycle();
    ASSERT_NE(left, 0) << "busy for ever";
  }
  // Pushes inputs, runs until the engine is idle, and returns the send records.
  template <class... Inputs>
  std::vector<SendRecord> send(const Inputs&... inputs) {
    push(inputs...);
    settle();
    return take_sends();
  }
  template <class... Inputs>
  std::vector<AnswerRecord> answer(const Inputs&... inputs) {
    push(inputs...);
    settle();
    return take_answers();
  }
  std::vector<SendRecord> take_sends() { return std::exchange(sends, {}); }
  std::vector<AnswerRecord> take_answers() { return std::exchange(answers, {}); }

  // Advances time to `time`. The engine runs at each wake-up time that the engine asked for.
  void sleep_until(std::uint64_t time) {
    while (engine.wake() && *engine.wake() < time) jump(*engine.wake());
    jump(time);
  }
  // Advances time to `time`, beyond the requested wake-up times, as a late shell would.
  void jump(std::uint64_t time) {
    now = std::max(now, time);
    settle();
  }

  VerilatedEngine engine;
  Lockstep reference_model;
  InputQueues queues;
  std::uint64_t now = 0;  // ticks
  bool takes_sends = true, takes_answers = true;
  std::vector<SendRecord> sends;
  std::vector<AnswerRecord> answers;
};

// Records of one kind.
template <class Record, class Op>
std::vector<Record> only(const std::vector<Record>& records, Op op) {
  std::vector<Record> some;
  std::ranges::copy_if(records, std::back_inserter(some), [op](const Record& record) { return record.op == op; });
  return some;
}

}  // namespace rnicsim::rtl::test
