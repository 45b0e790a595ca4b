// SPDX-License-Identifier: Apache-2.0
// Environment that a capture implies for a requester and a receiver: posts, delays and refusals. The conversations have
// known right packets: the engine agrees only if host and wire behaved as at the real NIC.
#include <gtest/gtest.h>

#include <optional>

#include "model/nic/engine/engine_factory.h"
#include "model/nic/engine/qp_context.h"
#include "model/nic/seam/qp_engine.h"
#include "sim/replay/replay.h"
#include "tests/support/wire_frames.h"

namespace rnicsim::sim::replay::requester_test {
namespace {

using roce::Aeth;
using roce::Opcode;
using test::Wire;

constexpr std::uint8_t kAck = Aeth::kAck | Aeth::kNoCredits;
constexpr Duration kMillisecond{1'000'000'000};

class ReplayRequester : public testing::Test {
 protected:
  void send(std::uint32_t psn, std::uint32_t bytes = 16) {
    wire.own_request(Wire::headers(Opcode::send_only, psn), bytes);
  }
  void ack(std::uint32_t psn, std::uint32_t msn, std::uint8_t syndrome = kAck) {
    wire.answer_to_own(Opcode::acknowledge, psn, syndrome, msn);
  }
  void read(std::uint32_t psn, std::uint32_t bytes, std::uint64_t address = 0x1000) {
    auto headers = Wire::headers(Opcode::read_request, psn);
    headers.reth = roce::Reth{address, {5}, bytes};
    wire.own_request(headers);
  }
  void response(Opcode opcode, std::uint32_t psn, std::uint32_t bytes) {
    auto headers = Wire::headers(opcode, psn, false);
    if (roce::info(opcode).has(roce::header::kAeth)) headers.aeth = Aeth{kAck, 1};
    wire.answer_to_own(headers, Wire::pattern(bytes));
  }
  // A SEND of four packets, or a part of it.
  void long_message(std::uint32_t from = 5, std::uint32_t to = 8) {
    for (auto psn = from; psn <= to; ++psn) {
      const auto opcode = psn == 5 ? Opcode::send_first : psn == 8 ? Opcode::send_last : Opcode::send_middle;
      wire.own_request(Wire::headers(opcode, psn, psn == 8), psn == 8 ? 10 : 1024);
    }
  }
  void refused_message() {
    long_message();
    ack(8, 0, Aeth::kRnrNak | 1);
  }
  void lose_the_first_of_two_twice() {
    for (int round = 0; round < 2; ++round) {
      read(5, 16), read(6, 16);
      response(Opcode::read_response_only, 6, 16);
    }
    read(5, 16), read(6, 16);
    response(Opcode::read_response_only, 5, 16), response(Opcode::read_response_only, 6, 16);
  }
  void uc(Opcode opcode, std::uint32_t psn, std::uint32_t bytes, std::optional<std::uint32_t> immediate = {}) {
    auto headers = Wire::headers(opcode, psn, false);
    headers.immediate = immediate;
    if (roce::info(opcode).has(roce::header::kReth)) headers.reth = roce::Reth{0x1000, {5}, 1500};
    wire.request(headers, bytes);
  }
  Replay run() { return run({}); }
  Replay run(Abilities abilities) {
    const auto engine_owner = nic::make_model_engine({.max_rd_atomic = abilities.rd_atomic});
    auto& engine = *engine_owner;
    return replay_frames(wire.frames, Wire::address(test::kNic), engine, nullptr, abilities);
  }
  RequesterEnvironment expect_agreement(std::uint64_t matched) {
    const auto replay = run();
    EXPECT_EQ(replay.differences(), 0u);
    EXPECT_EQ(replay.requests.at(0).matched, matched);
    return replay.environment.requesters.at(0);
  }
  Difference the_difference() {
    const auto replay = run();
    EXPECT_EQ(replay.differences(), 1u);
    const auto& all = replay.requests.at(0).differences;
    return all.empty() ? Difference{} : all[0];
  }

  Wire wire;
};

TEST_F(ReplayRequester, EveryOperation) {
  send(5);
  auto headers = Wire::headers(Opcode::write_first, 6, false);
  headers.reth = roce::Reth{0x1000, {5}, 1500};
  wire.own_request(headers, 1024);
  headers = Wire::headers(Opcode::write_last_imm, 7);
  headers.immediate = 9;
  headers.bth.solicited = true;
  wire.own_request(headers, 476);
  ack(7, 2);
  headers = Wire::headers(Opcode::send_only_inv, 8);
  headers.invalidate = roce::Rkey{0x77};
  wire.own_request(headers, 3);
  ack(8, 3);
  read(9, 100);
  response(Opcode::read_response_only, 9, 100);
  headers = Wire::headers(Opcode::compare_swap, 10);
  headers.atomic = roce::AtomicEth{0x1000, {5}, 1, 2};
  wire.own_request(headers);
  headers = Wire::headers(Opcode::atomic_acknowledge, 10, false);
  headers.aeth = Aeth{kAck, 5};
  headers.atomic_ack = 0x1122334455667788;
  wire.answer_to_own(headers);
  const auto qp = expect_agreement(6);
  EXPECT_EQ(qp.qpn.value, Wire::kQpn);
  ASSERT_EQ(qp.posted.size(), 5u);
  EXPECT_EQ(qp.posted[1].opcode, nic::SendOpcode::write_with_imm);
  EXPECT_EQ(qp.posted[1].length, 1500u);
  for (const auto& request : qp.posted) EXPECT_EQ(request.outcome, roce::Status::success);
}

TEST_F(ReplayRequester, GoesBackToWhatANakNames) {
  for (std::uint32_t psn = 5; psn <= 8; ++psn) send(psn);
  ack(6, 1, Aeth::kSequenceError);
  for (std::uint32_t psn = 6; psn <= 8; ++psn) send(psn);
  ack(8, 4);
  EXPECT_EQ(expect_agreement(7).count(Cause::nak), 1u);
}

// Two more packets were in flight when the NAK arrived.
TEST_F(ReplayRequester, MaySeeANakLate) {
  for (std::uint32_t psn = 5; psn <= 6; ++psn) send(psn);
  ack(5, 0, Aeth::kSequenceError);
  for (std::uint32_t psn = 7; psn <= 8; ++psn) send(psn);
  for (std::uint32_t psn = 5; psn <= 8; ++psn) send(psn);
  ack(8, 4);
  expect_agreement(8);
}

TEST_F(ReplayRequester, GoingBackToAnotherPsnIsADifference) {
  for (std::uint32_t psn = 5; psn <= 8; ++psn) send(psn);
  ack(6, 1, Aeth::kSequenceError);
  for (std::uint32_t psn = 7; psn <= 8; ++psn) send(psn);
  EXPECT_GT(run().differences(), 0u);
}

TEST_F(ReplayRequester, WaitsForAnRnrTimer) {
  constexpr std::uint8_t kTimer = 20;  // 10.24 ms
  wire.step = 11 * kMillisecond;
  send(5);
  ack(5, 0, Aeth::kRnrNak | kTimer);
  send(5);
  ack(5, 1);
  EXPECT_EQ(expect_agreement(2).count(Cause::rnr), 1u);
  for (auto& frame : wire.frames) frame.time = {frame.time.ps / 11 * 10};
  EXPECT_GT(run().differences(), 0u);
}

// Soft-RoCE does this: an RNR NAK acknowledges the packets before its PSN, but they are sent again.
TEST_F(ReplayRequester, MaySendAgainWhatOnlyAnRnrNakHasAcknowledged) {
  refused_message();
  long_message();
  ack(8, 1);
  const auto qp = expect_agreement(5);
  EXPECT_EQ(qp.count(Cause::rnr), 1u);
  EXPECT_EQ(run().equivalences()[static_cast<std::size_t>(Equivalence::rnr_acknowledges)], 3u);
  EXPECT_EQ(qp.posted.at(0).outcome, roce::Status::success);
}

TEST_F(ReplayRequester, WhatIsSentAgainBeforeTheRefusedPacketMustBeTheSame) {
  refused_message();
  long_message();
  ack(8, 1);
  constexpr std::size_t kAgain = 5, kIcrcBytes = 4;
  for (const auto packet : {0, 1, 2}) {
    auto& frame = wire.frames.at(kAgain + static_cast<std::size_t>(packet));
    auto& last = frame.bytes.at(frame.bytes.size() - kIcrcBytes - 1);
    last ^= std::byte{1};
    test::seal(frame);
    EXPECT_EQ(the_difference().frame, frame.number);
    last ^= std::byte{1};
    test::seal(frame);
  }
  EXPECT_EQ(run().differences(), 0u);
}

TEST_F(ReplayRequester, WhatAnAckHasAcknowledgedIsNotSentAgainBehindAnRnrNak) {
  long_message(5, 7);
  ack(5, 0);
  long_message(8, 8);
  ack(8, 0, Aeth::kRnrNak | 1);
  const auto before = wire.frames;
  long_message(6, 8);
  ack(8, 1);
  EXPECT_EQ(run().differences(), 0u);
  wire.frames = before;
  long_message(5, 8);
  ack(8, 1);
  EXPECT_EQ(run().differences(), 3u);
}

// The packets before the refused one are sent in order, followed by it.
TEST_F(ReplayRequester, WhatIsSentAgainLeadsToTheRefusedPacket) {
  refused_message();
  const auto before = wire.frames;
  for (const auto skipped : {5u, 6u, 7u}) {
    wire.frames = before;
    for (const auto psn : {5u, 6u, 7u, 8u})
      if (psn != skipped) long_message(psn, psn);
    ack(8, 1);
    EXPECT_EQ(run().differences(), 2u) << skipped;
  }
}

TEST_F(ReplayRequester, WithoutAnRnrNakNothingAcknowledgedIsSentAgain) {
  long_message(5, 7);
  ack(7, 0);
  long_message(5, 8);
  ack(8, 1);
  EXPECT_GT(run().differences(), 0u);
}

TEST_F(ReplayRequester, GivesUpWhenTheReceiverIsNeverReady) {
  for (int i = 0; i < 3; ++i) {
    send(5);
    ack(5, 0, Aeth::kRnrNak | 1);
  }
  const auto qp = expect_agreement(3);
  EXPECT_EQ(qp.rnr_retry, 2);
  EXPECT_EQ(qp.posted.at(0).outcome, roce::Status::rnr_retry_exceeded);
}

TEST_F(ReplayRequester, ManyRnrNaksAreWaitedForForEver) {
  for (int i = 0; i < 12; ++i) {
    send(5);
    ack(5, 0, Aeth::kRnrNak | 1);
  }
  EXPECT_EQ(expect_agreement(12).rnr_retry, 7);
}

TEST_F(ReplayRequester, TimeoutsSendAgainAndGiveUp) {
  wire.step = 5 * kMillisecond;
  for (int i = 0; i < 4; ++i) send(5);
  const auto qp = expect_agreement(4);
  EXPECT_EQ(qp.timeout, 10);
  EXPECT_EQ(qp.retry_count, 3);
  EXPECT_TRUE(qp.gives_up);
  EXPECT_EQ(qp.posted.at(0).outcome, roce::Status::transport_retry_exceeded);
}

TEST_F(ReplayRequester, ProgressGivesTheRetriesBack) {
  for (std::uint32_t psn = 5; psn < 10; ++psn) {
    for (int i = 0; i < 5; ++i) send(psn);
    ack(psn, psn - 4);
  }
  const auto qp = expect_agreement(25);
  EXPECT_EQ(qp.count(Cause::timeout), 20u);
  EXPECT_FALSE(qp.gives_up);
}

TEST_F(ReplayRequester, AMissingResponseIsAskedForAgain) {
  read(5, 3000);
  response(Opcode::read_response_first, 5, 1024);
  response(Opcode::read_response_last, 7, 952);
  read(6, 3000 - 1024, 0x1000 + 1024);
  response(Opcode::read_response_first, 6, 1024);
  response(Opcode::read_response_last, 7, 952);
  const auto qp = expect_agreement(2);
  EXPECT_EQ(qp.count(Cause::nak), 1u);
  EXPECT_EQ(qp.posted.at(0).brought.size(), 3000u);
}

// A requested packet is lost again, and answers behind the gap continue: the local ACK timeout ends that.
TEST_F(ReplayRequester, AGapIsAskedForOnceAndThenByTimeout) {
  wire.step = 5 * kMillisecond;
  lose_the_first_of_two_twice();
  const auto qp = expect_agreement(6);
  EXPECT_EQ(qp.count(Cause::nak), 1u);
  EXPECT_EQ(qp.count(Cause::timeout), 1u);
  for (const auto& request : qp.posted) EXPECT_EQ(request.outcome, roce::Status::success);
}

TEST_F(ReplayRequester, AskingForAGapASecondTimeAtOnceIsADifference) {
  wire.step = Duration{1'000'000};
  lose_the_first_of_two_twice();
  EXPECT_GT(run().differences(), 0u);
}

TEST_F(ReplayRequester, AfterATimeoutAGapIsAskedForAtOnceAgain) {
  wire.step = 5 * kMillisecond;
  for (int round = 0; round < 3; ++round) {
    read(5, 16), read(6, 16);
    if (round != 0) response(Opcode::read_response_only, 6, 16);
  }
  read(5, 16), read(6, 16);
  response(Opcode::read_response_only, 5, 16), response(Opcode::read_response_only, 6, 16);
  const auto qp = expect_agreement(8);
  EXPECT_EQ(qp.count(Cause::timeout), 2u);
  EXPECT_EQ(qp.count(Cause::nak), 1u);
}

// The engine waits for answers if its limit of requests in flight is lower than the real NIC's.
TEST_F(ReplayRequester, HasAsManyReadsInFlightAsTheRealNic) {
  constexpr std::uint32_t kReads = 40;
  for (std::uint32_t n = 0; n < kReads; ++n) read(n, 16);
  for (std::uint32_t n = 0; n < kReads; ++n) response(Opcode::read_response_only, n, 16);
  const auto replay = run({.rd_atomic = kReads});
  EXPECT_EQ(replay.differences(), 0u);
  EXPECT_EQ(replay.requests.at(0).matched, kReads);
  EXPECT_NE(run({.rd_atomic = 16}).differences(), 0u);
}

TEST_F(ReplayRequester, AskingForOtherBytesIsADifference) {
  read(5, 3000);
  response(Opcode::read_response_first, 5, 1024);
  response(Opcode::read_response_last, 7, 952);
  read(6, 3000 - 1024, 0x1000 + 1025);
  response(Opcode::read_response_first, 6, 1024);
  response(Opcode::read_response_last, 7, 952);
  const auto difference = the_difference();
  EXPECT_EQ(difference.subject, Subject::request);
  ASSERT_EQ(difference.fields.size(), 1u);
  EXPECT_EQ(difference.fields[0].field, "address");
}

TEST_F(ReplayRequester, NothingFollowsAnErrorOfTheResponder) {
  send(5), send(6);
  ack(5, 0, Aeth::kRemoteOperationError);
  const auto qp = expect_agreement(2);
  EXPECT_EQ(qp.posted.at(0).outcome, roce::Status::remote_operation_error);
  EXPECT_EQ(qp.posted.at(1).outcome, roce::Status::flushed_error);
  send(5);
  EXPECT_EQ(the_difference().frame, 4u);
}

TEST_F(ReplayRequester, ACaptureMayEndInAMessage) {
  wire.own_request(Wire::headers(Opcode::send_first, 5, false), 1024);
  wire.own_request(Wire::headers(Opcode::send_middle, 6, false), 1024);
  EXPECT_TRUE(expect_agreement(2).unfinished);
}

TEST_F(ReplayRequester, AMissingPacketOfItsOwnShowsOnce) {
  send(5), send(6), send(8), send(9);
  const auto difference = the_difference();
  EXPECT_EQ(difference.subject, Subject::capture);
  EXPECT_EQ(difference.frame, 3u);
}

TEST_F(ReplayRequester, WhetherAPacketInsideAsksForAnAckIsFree) {
  for (std::uint32_t psn = 5; psn < 7; ++psn)
    wire.own_request(Wire::headers(psn == 5 ? Opcode::send_first : Opcode::send_middle, psn, psn == 6), 1024);
  wire.own_request(Wire::headers(Opcode::send_last, 7), 10);
  ack(7, 1);
  expect_agreement(3);
  EXPECT_EQ(run().equivalences()[static_cast<std::size_t>(Equivalence::ack_request)], 1u);
  wire.frames.resize(2);
  wire.own_request(Wire::headers(Opcode::send_last, 7, false), 10);
  EXPECT_EQ(the_difference().fields.at(0).field, "ack_request");
}

// --- Receivers.
TEST_F(ReplayRequester, UcDeliversWhatIsWhole) {
  uc(Opcode::uc_send_first, 5, 1024);
  uc(Opcode::uc_send_last_imm, 6, 7, 99);
  uc(Opcode::uc_send_first, 7, 1024);  // its last packet is lost
  uc(Opcode::uc_write_first, 9, 1024);
  uc(Opcode::uc_write_last, 10, 476);
  uc(Opcode::uc_write_last, 12, 476);  // its first packet is lost
  uc(Opcode::uc_send_only, 13, 20);
  const auto replay = run();
  EXPECT_EQ(replay.differences(), 0u);
  EXPECT_EQ(replay.deliveries.at(0).matched, 3u);
  const auto& deliveries = replay.environment.qps.at(0).deliveries;
  ASSERT_EQ(deliveries.size(), 3u);
  EXPECT_EQ(deliveries[0].immediate, 99u);
  EXPECT_EQ(deliveries[0].bytes.size(), 1031u);
  EXPECT_TRUE(deliveries[1].is_write);
  EXPECT_EQ(deliveries[2].frame, 7u);
}

TEST_F(ReplayRequester, UdDeliversWhatHasTheKey) {
  wire.datagram(1, 7, 0x11, 20);
  wire.datagram(2, 7, 0x22, 30);
  wire.datagram(3, 7, 0x11, 0);
  const auto replay = run();
  EXPECT_EQ(replay.differences(), 0u);
  EXPECT_EQ(replay.deliveries.at(0).matched, 2u);
  EXPECT_EQ(replay.environment.qps.at(0).deliveries.at(0).bytes.size(), roce::kGrhBytes + 20);
  EXPECT_EQ(replay.environment.qps.at(0).deliveries.at(0).source, Wire::kPeerQpn);
}

}  // namespace
}  // namespace rnicsim::sim::replay::requester_test
