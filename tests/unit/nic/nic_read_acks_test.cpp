// SPDX-License-Identifier: Apache-2.0
// Acknowledgements of READ responses (nic.transport.read_acks): responses that request one, its content, and limits
// that delay responses.
#include <algorithm>
#include <optional>
#include <vector>

#include "model/nic/nic_counters.h"
#include "model/nic/packets/packet.h"
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::read_acks_test {
namespace {

using namespace test;
using abi::CqeSyndrome;
using abi::SendOpcode;
using roce::Opcode;

constexpr std::uint32_t kMtu = 1024;

// a reads from b. Acknowledgements of responses go from a to b.
class NicReadAcks : public Pair {
 protected:
  struct Seen {
    Duration at;
    Opcode opcode;
    std::uint32_t psn;
    bool asks;
    bool becn;
    std::optional<Telemetry> block;
  };

  void SetUp() override { params_.transport.read_acks = true; }
  // `lost`: true if the packet is dropped.
  void start(std::function<bool(const Packet&)> lost = [](const Packet&) { return false; }) {
    build(params_);
    connect(3, [](abi::Qpc& qpc) {
      qpc.timeout = 5;  // 131 us
      qpc.retry_count = 7;
    });
    drop() = [this, lost](Frame& frame) {
      const auto* packet = frame.as<Packet>();
      if (packet == nullptr) return false;
      const auto& bth = packet->headers.bth;
      auto& seen = bth.opcode == Opcode::read_acknowledge ? acks_ : others_;
      seen.push_back({now(), bth.opcode, bth.psn.value(), bth.ack_request, bth.becn, std::nullopt});
      if (frame.telemetry() != nullptr) seen.back().block = *frame.telemetry();
      if (marks_ && frame.is_markable()) frame.mark();
      return lost(*packet);
    };
  }
  void read(std::uint32_t bytes, int count = 1) {
    for (int i = 0; i < count; ++i) a().post_send({.opcode = SendOpcode::read, .length = bytes, .remote = at_b()});
    for (int i = 0; i < count; ++i) EXPECT_EQ(a().wait_status(kSendCqn, 1_s), CqeSyndrome::success);
    run(5);
  }
  std::vector<Seen> responses() const {
    std::vector<Seen> responses;
    std::ranges::copy_if(others_, std::back_inserter(responses), [](const Seen& seen) {
      return roce::info(seen.opcode).operation == roce::Operation::read_response;
    });
    return responses;
  }

  NicParams params_;
  bool marks_ = false;
  std::vector<Seen> acks_, others_;
};

TEST_F(NicReadAcks, AreNotAskedForByDefault) {
  params_.transport.read_acks = false;
  start();
  read(8 * kMtu);
  EXPECT_TRUE(acks_.empty());
  for (const auto& response : responses()) EXPECT_FALSE(response.asks);
}

TEST_F(NicReadAcks, EveryFewResponsesAndTheLastAskForOne) {
  start();
  read(10 * kMtu);
  std::vector<std::uint32_t> asked, acknowledged;
  const auto came = responses();
  ASSERT_EQ(came.size(), 10u);
  const auto first = came[0].psn;
  for (const auto& response : came)
    if (response.asks) asked.push_back(response.psn - first);
  for (const auto& ack : acks_) acknowledged.push_back(ack.psn - first);
  EXPECT_EQ(asked, (std::vector<std::uint32_t>{3, 7, 9}));
  EXPECT_EQ(acknowledged, asked);
}

// No more packets than the limit leave before the first acknowledgement.
TEST_F(NicReadAcks, ALimitOfPacketsInFlightHoldsResponsesBack) {
  for (const std::uint32_t most : {1u, 3u, 6u}) {
    params_.transport.most_in_flight = most;
    acks_.clear(), others_.clear();
    start();
    read(16 * kMtu);
    const auto came = responses();
    ASSERT_EQ(came.size(), 16u);
    std::size_t sent = 0, most_unanswered = 0;
    std::int64_t answered = 0;
    for (const auto& response : came) {
      ++sent;
      for (const auto& ack : acks_)
        if (ack.at < response.at) answered = std::max<std::int64_t>(answered, ack.psn - came[0].psn + 1);
      most_unanswered = std::max<std::size_t>(most_unanswered, sent - static_cast<std::size_t>(answered));
    }
    EXPECT_LE(most_unanswered, most + 1) << most;  // an acknowledgement may be in flight
    EXPECT_GE(most_unanswered, std::min<std::size_t>(most, 3)) << most;
  }
}

// The requester's timer requests the response again, and the responder starts again.
TEST_F(NicReadAcks, WhereAllAreLostTheReadComesToItsEnd) {
  params_.transport.most_in_flight = 4;
  start([](const Packet& packet) { return packet.headers.bth.opcode == Opcode::read_acknowledge; });
  read(10 * kMtu);
  EXPECT_FALSE(acks_.empty());
  read(10 * kMtu);
}

TEST_F(NicReadAcks, WhatIsLostIsAskedForAgain) {
  params_.transport.most_in_flight = 4;
  int responses_seen = 0;
  start([&](const Packet& packet) {
    const auto& row = roce::info(packet.headers.bth.opcode);
    return row.operation == roce::Operation::read_response && ++responses_seen % 5 == 3;
  });
  read(20 * kMtu);
  EXPECT_GT(responses().size(), 20u);
}

TEST_F(NicReadAcks, BringMarksAndTheDelayInsideTheRequester) {
  params_.congestion.control.name = "dctcp";
  params_.congestion.ecn = "forced";
  marks_ = true;
  start();
  read(4 * kMtu);
  ASSERT_FALSE(acks_.empty());
  EXPECT_TRUE(acks_[0].becn);
  params_.congestion.control.name = "swift";
  acks_.clear(), others_.clear();
  start();
  read(4 * kMtu);
  ASSERT_FALSE(acks_.empty());
  EXPECT_EQ(responses()[0].block, Telemetry::delay_request());
  ASSERT_TRUE(acks_[0].block && acks_[0].block->delay());
  EXPECT_GE(*acks_[0].block->delay(), params_.rx.latency);
}

// With a window of one packet each response waits for the acknowledgement of the previous response.
TEST_F(NicReadAcks, AWindowHoldsResponsesBack) {
  const auto time = [&] {
    const auto begin = now();
    read(1 << 16);
    return now() - begin;
  };
  start();
  const auto free = time();
  params_.congestion.control.name = "dctcp";
  params_.congestion.ecn = "forced";
  marks_ = true;
  start();
  for (int i = 0; i < 20; ++i) read(1 << 16);
  EXPECT_GT(time(), 2 * free);
}

// An acknowledgement whose PSN belongs to no READ response of the queue pair.
TEST_F(NicReadAcks, OnesThatNobodyAskedForDoNothing) {
  start();
  read(4 * kMtu);
  auto packet = Packet::make();
  packet->headers.bth.opcode = Opcode::read_acknowledge;
  packet->headers.bth.destination = {kQpn};
  packet->headers.bth.psn = roce::Psn(0x123456);
  packet->headers.aeth = roce::Aeth{};
  packet->seal(0, false);
  b().nic.receive(Frame(packet), 0_ns);
  run(5);
  read(4 * kMtu);
}

}  // namespace
}  // namespace rnicsim::nic::read_acks_test
