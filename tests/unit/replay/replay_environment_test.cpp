// SPDX-License-Identifier: Apache-2.0
// Environment that a capture implies for a responder: memory, receives and refusals. The conversations have known right
// answers: the engine agrees only if it got the same environment as the real NIC.
#include <gtest/gtest.h>

#include "model/nic/engine/engine_factory.h"
#include "model/nic/engine/qp_context.h"
#include "model/nic/seam/qp_engine.h"
#include "sim/config/config_error.h"
#include "sim/replay/replay.h"
#include "tests/support/wire_frames.h"

namespace rnicsim::sim::replay::environment_test {
namespace {

using roce::Aeth;
using roce::Opcode;
using test::Wire;

constexpr std::uint8_t kAck = Aeth::kAck | Aeth::kNoCredits;
constexpr std::uint64_t kAddress = 0x7000'0000'0ff8;
constexpr std::uint32_t kRkey = 0x123;

class ReplayEnvironment : public testing::Test {
 protected:
  std::uint32_t send(std::uint32_t psn, std::uint32_t bytes = 16) {
    return wire.request(Wire::headers(Opcode::send_only, psn), bytes);
  }
  std::uint32_t ack(std::uint32_t psn, std::uint32_t msn, std::uint8_t syndrome = kAck) {
    return wire.answer(Opcode::acknowledge, psn, syndrome, msn);
  }
  std::uint32_t write(std::uint32_t psn, std::uint32_t bytes, std::uint64_t address = kAddress) {
    auto headers = Wire::headers(Opcode::write_only, psn);
    headers.reth = roce::Reth{address, {kRkey}, bytes};
    return wire.request(headers, bytes);
  }
  std::uint32_t read(std::uint32_t psn, std::uint32_t bytes, std::uint64_t address = kAddress) {
    auto headers = Wire::headers(Opcode::read_request, psn);
    headers.reth = roce::Reth{address, {kRkey}, bytes};
    return wire.request(headers);
  }
  std::uint32_t response(std::uint32_t psn, std::uint32_t msn, std::span<const std::byte> payload) {
    auto headers = Wire::headers(Opcode::read_response_only, psn, false);
    headers.aeth = Aeth{kAck, msn};
    return wire.answer(headers, payload);
  }
  std::uint32_t atomic(Opcode opcode, std::uint32_t psn, std::uint64_t swap_add, std::uint64_t compare = 0) {
    auto headers = Wire::headers(opcode, psn);
    headers.atomic = roce::AtomicEth{kAddress, {kRkey}, swap_add, compare};
    return wire.request(headers);
  }
  std::uint32_t original(std::uint32_t psn, std::uint32_t msn, std::uint64_t value) {
    auto headers = Wire::headers(Opcode::atomic_acknowledge, psn, false);
    headers.aeth = Aeth{kAck, msn};
    headers.atomic_ack = value;
    return wire.answer(headers);
  }
  Replay run() {
    const auto engine_owner = nic::make_model_engine({});
    auto& engine = *engine_owner;
    return replay_frames(wire.frames, Wire::address(test::kNic), engine);
  }
  void expect_agreement(std::uint64_t matched) {
    const auto replay = run();
    ASSERT_EQ(replay.comparisons.size(), 1u);
    EXPECT_EQ(replay.differences(), 0u);
    EXPECT_EQ(replay.comparisons[0].matched, matched);
    EXPECT_EQ(replay.compared(), matched);
  }

  Wire wire;
};

TEST_F(ReplayEnvironment, PeerMtuAndFirstPsn) {
  auto headers = Wire::headers(Opcode::send_first, 0xfffffe, false);
  wire.request(headers, 2048);
  headers = Wire::headers(Opcode::send_last, 0xffffff);
  wire.request(headers, 1);
  ack(0xffffff, 1);
  send(0);
  ack(0, 2);
  const auto replay = run();
  const auto& qp = replay.environment.qps.at(0);
  EXPECT_EQ(qp.qpn.value, Wire::kQpn);
  EXPECT_EQ(qp.peer_qpn.value, Wire::kPeerQpn);
  EXPECT_EQ(roce::mtu_bytes(qp.path_mtu), 2048u);
  EXPECT_EQ(qp.first_psn.value(), 0xfffffeu);
  expect_agreement(2);
}

TEST_F(ReplayEnvironment, NoReceiveWhereTheRealNicHadNone) {
  constexpr std::uint8_t kTimer = 14;
  send(5);
  ack(5, 1);
  send(6);
  send(7);  // in flight, and dropped
  ack(6, 1, Aeth::kRnrNak | kTimer);
  send(6);
  ack(6, 1, Aeth::kRnrNak | kTimer);
  send(6);
  send(7);
  ack(6, 2);
  ack(7, 3);
  expect_agreement(5);
  EXPECT_EQ(run().environment.qps[0].min_rnr_timer, kTimer);
}

TEST_F(ReplayEnvironment, AnImmediateTakesAReceiveOnItsLastPacket) {
  auto headers = Wire::headers(Opcode::write_only_imm, 5);
  headers.reth = roce::Reth{kAddress, {kRkey}, 8};
  headers.immediate = 1;
  wire.request(headers, 8);
  ack(5, 0, Aeth::kRnrNak | 1);
  wire.request(headers, 8);
  ack(5, 1);
  expect_agreement(2);
}

TEST_F(ReplayEnvironment, AccessIsDeniedWhereTheRealNicDeniedIt) {
  write(5, 32);
  ack(5, 1);
  write(6, 32, kAddress + 4096);
  ack(6, 1, Aeth::kRemoteAccessError);
  write(7, 32);  // the QP is in ERR
  expect_agreement(2);
}

TEST_F(ReplayEnvironment, AReceiveThatIsTooShort) {
  send(5, 64);
  ack(5, 0, Aeth::kInvalidRequest);
  expect_agreement(1);
}

TEST_F(ReplayEnvironment, AGapIsNakedOnce) {
  send(5);
  ack(5, 1);
  send(7);
  ack(6, 1, Aeth::kSequenceError);
  send(8);
  send(6);
  ack(6, 2);
  send(7);
  ack(7, 3);
  expect_agreement(4);
}

TEST_F(ReplayEnvironment, DuplicatesAreAnsweredAgain) {
  const auto bytes = Wire::pattern(16);
  send(5);
  ack(5, 1);
  write(6, 16);
  ack(6, 2);
  read(7, 16);
  response(7, 3, bytes);
  send(5);
  ack(7, 3);
  read(7, 16);
  response(7, 3, bytes);
  expect_agreement(5);
}

// The last packet was lost on the way, and the requester's timer repeated the message.
TEST_F(ReplayEnvironment, AWriteOfWhichAllIsSentAgain) {
  constexpr std::uint32_t kMtu = 256, kTail = 8;
  auto first = Wire::headers(Opcode::write_first, 5, false);
  first.reth = roce::Reth{kAddress, {kRkey}, 2 * kMtu + kTail};
  for (int round = 0; round < 2; ++round) {
    wire.request(first, kMtu);
    wire.request(Wire::headers(Opcode::write_middle, 6, false), kMtu);
  }
  wire.request(Wire::headers(Opcode::write_last, 7), kTail);
  ack(7, 1);
  expect_agreement(1);
  EXPECT_EQ(run().deliveries.at(0).matched, 1u);
}

TEST_F(ReplayEnvironment, AReadGivesWhatWasWritten) {
  const auto bytes = Wire::pattern(64);
  write(5, 64);
  ack(5, 1);
  read(6, 16, kAddress + 8);
  response(6, 2, std::span(bytes).subspan(8, 16));
  expect_agreement(2);
  EXPECT_EQ(run().memory_use.checked, 16u);
  wire.frames.pop_back();
  response(6, 2, std::span(bytes).subspan(9, 16));
  EXPECT_EQ(run().differences(), 1u);
}

TEST_F(ReplayEnvironment, MemoryThatItsProgramChanges) {
  const auto bytes = Wire::pattern(32);
  read(5, 16);
  response(5, 1, std::span(bytes).first(16));
  read(6, 16);
  response(6, 2, std::span(bytes).last(16));
  expect_agreement(2);
  EXPECT_EQ(run().memory_use.checked, 0u);
  EXPECT_EQ(run().memory_use.learnt, 32u);
}

TEST_F(ReplayEnvironment, AChainOfAtomics) {
  atomic(Opcode::fetch_add, 5, 10);
  original(5, 1, 100);
  atomic(Opcode::compare_swap, 6, 7, 110);
  original(6, 2, 110);
  atomic(Opcode::compare_swap, 7, 9, 110);
  original(7, 3, 7);
  expect_agreement(3);
  EXPECT_EQ(run().memory_use.learnt, 8u);
  EXPECT_EQ(run().memory_use.checked, 16u);
  wire.frames.pop_back();
  original(7, 3, 110);
  EXPECT_EQ(run().differences(), 1u);
}

TEST_F(ReplayEnvironment, ADuplicateAtomicIsNotExecutedAgain) {
  atomic(Opcode::fetch_add, 5, 10);
  original(5, 1, 100);
  atomic(Opcode::fetch_add, 5, 10);
  original(5, 1, 100);
  atomic(Opcode::fetch_add, 6, 10);
  original(6, 2, 110);
  expect_agreement(3);
}

TEST_F(ReplayEnvironment, ACorruptRequestIsDropped) {
  send(5);
  ack(5, 1);
  send(6);
  wire.frames.back().bytes[60] ^= std::byte{1};
  send(6);
  ack(6, 2);
  expect_agreement(2);
  EXPECT_EQ(run().environment.count(Role::corrupt), 1u);
}

TEST_F(ReplayEnvironment, ManyReceives) {
  constexpr std::uint32_t kMany = 70000;  // more than the ring, and more than the producer's 16 bits
  for (std::uint32_t n = 0; n < kMany; ++n) {
    send(n, 4);
    ack(n, n + 1);
  }
  expect_agreement(kMany);
}

// A hundred bytes of a capture must not cause gigabytes of answers.
TEST_F(ReplayEnvironment, ReadsOfWhatNoCaptureHolds) {
  send(100), ack(100, 1);
  read(101, 1u << 30);
  EXPECT_THROW(run(), ConfigError);
}

// Packets before a refusal are executed: all of an invalid READ, and none of a denied one.
TEST_F(ReplayEnvironment, RefusedReadsOfWhatNoCaptureHolds) {
  constexpr std::uint32_t kLength = 1u << 27, kRead = 101, kPackets = kLength / 256;
  send(100), ack(100, 1);
  read(kRead, kLength);
  const auto too_much = [&](std::uint32_t psn, std::uint8_t syndrome) {
    ack(psn, 1, syndrome);
    bool complained = false;
    try {
      run();
    } catch (const ConfigError&) {
      complained = true;
    }
    wire.frames.pop_back();
    return complained;
  };
  EXPECT_TRUE(too_much(kRead, Aeth::kInvalidRequest));
  EXPECT_TRUE(too_much(kRead + kPackets - 1, Aeth::kRemoteOperationError));
  EXPECT_TRUE(too_much(kRead + kPackets - 1, Aeth::kRemoteAccessError));
  EXPECT_FALSE(too_much(kRead, Aeth::kRemoteAccessError));
  EXPECT_FALSE(too_much(kRead, Aeth::kRemoteOperationError));
  EXPECT_FALSE(too_much(kRead + 4, Aeth::kRemoteOperationError));
}

}  // namespace
}  // namespace rnicsim::sim::replay::environment_test
