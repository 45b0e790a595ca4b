// SPDX-License-Identifier: Apache-2.0
// Cycles per packet when the engine waits for nothing else: its neighbours answer at once.
#include <gmock/gmock.h>

#include "tests/rtl/engine_bench.h"

namespace rnicsim::rtl::test::qp_engine_rate {
namespace {

using roce::Opcode;

constexpr std::uint32_t kMtu = 256;
constexpr int kWarm = 4'000, kMeasured = 40'000;  // cycles
constexpr double kTolerance = 0.1;

// Requests leave the port at once, and are answered as soon as they request an ACK.
class Sending {
 public:
  Sending(unsigned slots, MessageKind kind, std::uint32_t length, std::uint8_t batch = 1) : batch_(batch) {
    for (unsigned slot = 0; slot < slots; ++slot) {
      bench_.start(send_start(static_cast<std::uint8_t>(slot), 0));
      for (unsigned i = 0; i < kMessages / 2; ++i) post(static_cast<std::uint8_t>(slot), kind, length);
    }
  }
  // Cycles per packet: requests sent; for READs and atomics, responses received.
  double cycles_a_packet() {
    run(kWarm);
    packets_ = 0;
    run(kMeasured);
    return static_cast<double>(kMeasured) / packets_;
  }

 private:
  void post(std::uint8_t slot, MessageKind kind, std::uint32_t length) {
    bench_.push(Post{.slot = slot, .operation = kind, .length = length});
    posts_[slot] = {.slot = slot, .operation = kind, .length = length};
  }
  void run(int cycles) {
    for (int i = 0; i < cycles; ++i) {
      bench_.cycle();
      for (const auto& record : bench_.take_sends()) take(record);
    }
  }
  void take(const SendRecord& record) {
    const auto slot = record.slot;
    if (record.op == SendOp::complete) bench_.push(posts_[slot]);
    if (record.place) {
      ++packets_;
      bench_.push(SendEvent{.slot = slot, .kind = SendEvent::Kind::placed, .message = record.message});
    }
    if (record.op != SendOp::packet) return;
    const auto opcode = static_cast<Opcode>(record.opcode);
    if (opcode != Opcode::read_request && opcode != Opcode::fetch_add) ++packets_;
    if (++ahead_[slot] == batch_ || record.ack_request) {
      bench_.push(SendEvent{
          .slot = slot, .kind = SendEvent::Kind::left, .count = ahead_[slot], .has_psn = true, .psn = record.end_psn});
      ahead_[slot] = 0;
    }
    if (opcode == Opcode::read_request) {
      const auto packets = roce::packets_for(record.length, kMtu);
      for (std::uint32_t index = 0; index < packets; ++index) {
        const auto bytes = std::min(kMtu, record.length - index * kMtu);
        const auto response = roce::rc_opcode(roce::Operation::read_response, roce::position_of(index, packets));
        bench_.push(Response{slot, code(response), record.psn + index, kAck, static_cast<std::uint16_t>(bytes)});
      }
    } else if (opcode == Opcode::fetch_add) {
      bench_.push(Response{slot, code(Opcode::atomic_acknowledge), record.psn, kAck, 0});
    } else if (record.ack_request) {
      bench_.push(Response{slot, code(Opcode::acknowledge), record.psn, kAck, 0});
    }
  }

  Bench bench_;
  const std::uint8_t batch_;
  std::array<Post, kSlots> posts_{};
  std::array<std::uint8_t, kSlots> ahead_{};
  int packets_ = 0;
};

// Requests arrive as fast as they are accepted, payload lands at once, and answers leave the port at once.
class Answering {
 public:
  Answering(unsigned slots, Opcode first, std::uint32_t length, std::uint8_t batch = 1)
      : slots_(slots), batch_(batch), operation_(roce::info(first).operation), length_(length) {
    for (unsigned slot = 0; slot < slots; ++slot) bench_.start(answer_start(static_cast<std::uint8_t>(slot), 0));
  }
  // Cycles per packet: requests accepted; for READs, responses sent.
  double cycles_a_packet() {
    run(kWarm);
    packets_ = 0;
    run(kMeasured);
    return static_cast<double>(kMeasured) / packets_;
  }

 private:
  void run(int cycles) {
    for (int i = 0; i < cycles; ++i) {
      if (!bench_.engine.offers<Request>() && (operation_ != roce::Operation::read || pending_[turn_] < 4)) next();
      bench_.cycle();
      for (const auto& record : bench_.take_answers()) take(record);
    }
  }
  void next() {
    const auto slot = turn_;
    turn_ = (turn_ + 1) % slots_;
    const auto packets = roce::packets_for(length_, kMtu);
    auto& index = indices_[slot];
    Request request{.slot = static_cast<std::uint8_t>(slot),
                    .psn = psns_[slot],
                    .length = length_,
                    .receive_known = true,
                    .receive_available = true,
                    .receive_bytes = kMaxMessage,
                    .access_known = true,
                    .access_granted = true};
    if (operation_ == roce::Operation::read) {
      request.opcode = code(Opcode::read_request);
      request.ack_request = true;
      psns_[slot] = (psns_[slot] + packets) & 0xffffff;
      ++pending_[slot];
    } else {
      request.opcode = code(roce::rc_opcode(operation_, roce::position_of(index, packets)));
      request.bytes = static_cast<std::uint16_t>(std::min(kMtu, length_ - index * kMtu));
      request.ack_request = index + 1 == packets || index % 256 == 255;
      index = (index + 1) % packets;
      psns_[slot] = (psns_[slot] + 1) & 0xffffff;
    }
    bench_.push(request);
  }
  void take(const AnswerRecord& record) {
    if (record.op == AnswerOp::request) {
      ASSERT_TRUE(record.verdict == Verdict::place || record.verdict == Verdict::read);
      packets_ += record.verdict == Verdict::place;
      if (record.verdict == Verdict::place && record.length != 0)
        bench_.push(AnswerEvent{
            .slot = record.slot, .kind = AnswerEvent::Kind::placed, .pending_answer = record.pending_answer});
    }
    if (record.op == AnswerOp::packet) {
      packets_ += record.opcode != code(Opcode::acknowledge);
      const auto& row = *roce::find_opcode(record.opcode);
      if (row.operation == roce::Operation::read_response && row.ends()) --pending_[record.slot];
      if (++ahead_[record.slot] == batch_) {
        bench_.push(AnswerEvent{.slot = record.slot, .kind = AnswerEvent::Kind::left, .count = batch_});
        ahead_[record.slot] = 0;
      }
    }
  }

  Bench bench_;
  const unsigned slots_;
  const std::uint8_t batch_;
  const roce::Operation operation_;
  const std::uint32_t length_;
  unsigned turn_ = 0;
  std::array<std::uint32_t, kSlots> psns_{}, indices_{};
  std::array<unsigned, kSlots> pending_{};
  std::array<std::uint8_t, kSlots> ahead_{};
  int packets_ = 0;
};

struct Rate {
  const char* name;
  unsigned slots;
  double cycles;
  MessageKind kind;
  std::uint32_t length;
  std::uint8_t batch = 1;  // number of packets in one report that packets have left
};
void PrintTo(const Rate& rate, std::ostream* out) { *out << rate.name; }
std::string name_of(const ::testing::TestParamInfo<Rate>& info) {
  return std::string(info.param.name) + "_of_" + std::to_string(info.param.slots) + "_by_" +
         std::to_string(info.param.batch);
}

class QpEngineSendRate : public ::testing::TestWithParam<Rate> {};
TEST_P(QpEngineSendRate, InCyclesAPacket) {
  const auto& rate = GetParam();
  EXPECT_NEAR(Sending(rate.slots, rate.kind, rate.length, rate.batch).cycles_a_packet(), rate.cycles, kTolerance);
}
// Cycles: a packet 3, the report that it left 4, a post 3; an acknowledgement 8, plus 1 for each completed message; a
// response 7, plus 6 when it has landed.
INSTANTIATE_TEST_SUITE_P(Of, QpEngineSendRate,
                         ::testing::Values(Rate{"long_writes", 1, 7, MessageKind::write, 1 << 20},
                                           Rate{"long_writes", 16, 7, MessageKind::write, 1 << 20},
                                           Rate{"long_writes", 1, 3.5, MessageKind::write, 1 << 20, 8},
                                           Rate{"long_writes", 16, 3.5, MessageKind::write, 1 << 20, 8},
                                           Rate{"long_sends", 16, 7, MessageKind::send, 1 << 20},
                                           Rate{"writes", 1, 19, MessageKind::write, 64},
                                           Rate{"writes", 16, 19, MessageKind::write, 64},
                                           Rate{"sends", 16, 19, MessageKind::send, 64},
                                           Rate{"read_responses", 1, 13, MessageKind::read, 1 << 16},
                                           Rate{"read_responses", 16, 13, MessageKind::read, 1 << 16},
                                           Rate{"reads", 16, 24, MessageKind::read, 64},
                                           Rate{"atomics", 16, 24, MessageKind::fetch_add, 8}),
                         name_of);

class QpEngineAnswerRate : public ::testing::TestWithParam<Rate> {};
TEST_P(QpEngineAnswerRate, InCyclesAPacket) {
  const auto& rate = GetParam();
  const auto opcode = rate.kind == MessageKind::send   ? Opcode::send_first
                      : rate.kind == MessageKind::read ? Opcode::read_request
                                                       : Opcode::write_first;
  EXPECT_NEAR(Answering(rate.slots, opcode, rate.length, rate.batch).cycles_a_packet(), rate.cycles, kTolerance);
}
// Cycles: a request 3, the report that its payload landed 4, an answer 3, the report that it left 3; a READ 2 more, and
// 2 at its end.
INSTANTIATE_TEST_SUITE_P(Of, QpEngineAnswerRate,
                         ::testing::Values(Rate{"long_writes", 1, 7.5, MessageKind::write, 1 << 20},
                                           Rate{"long_writes", 16, 7, MessageKind::write, 1 << 20},
                                           Rate{"long_sends", 16, 7, MessageKind::send, 1 << 20},
                                           Rate{"writes", 1, 12, MessageKind::write, 64},
                                           Rate{"writes", 16, 13, MessageKind::write, 64},
                                           Rate{"writes", 16, 10.4, MessageKind::write, 64, 8},
                                           Rate{"sends", 16, 14, MessageKind::send, 64},
                                           Rate{"read_responses", 1, 6, MessageKind::read, 1 << 16},
                                           Rate{"read_responses", 16, 6, MessageKind::read, 1 << 16},
                                           Rate{"read_responses", 1, 3.4, MessageKind::read, 1 << 16, 8},
                                           Rate{"read_responses", 16, 3.4, MessageKind::read, 1 << 16, 8},
                                           Rate{"reads", 16, 13, MessageKind::read, 64}),
                         name_of);

}  // namespace
}  // namespace rnicsim::rtl::test::qp_engine_rate
