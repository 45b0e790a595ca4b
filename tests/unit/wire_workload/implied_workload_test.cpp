// SPDX-License-Identifier: Apache-2.0
// Does a capture give the work of its hosts: each request once, with its time, memory and receive, and a sentence for
// each omitted request?
#include <gmock/gmock.h>

#include "sim/config/config_error.h"
#include "sim/wire_workload/implied_workload.h"
#include "sim/wire_workload/initial_memory.h"
#include "tests/support/wire_frames.h"

namespace rnicsim::sim::wire_workload::implied_workload_test {
namespace {

using replay::test::Wire;
using roce::Aeth;
using roce::Opcode;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

constexpr std::uint8_t kAck = Aeth::kAck | Aeth::kNoCredits;
constexpr std::uint8_t kNotReady = Aeth::kRnrNak | 14;
constexpr std::uint64_t kAddress = 0x7000'0000'0ff8;
constexpr std::uint32_t kRkey = 0x123;

class ImpliedWorkload : public testing::Test {
 protected:
  ImpliedWorkload() { wire.step = Duration{1'000'000}; }

  std::uint32_t send(std::uint32_t psn, std::uint32_t bytes = 16) {
    return wire.request(Wire::headers(Opcode::send_only, psn), bytes);
  }
  std::uint32_t ack(std::uint32_t psn, std::uint32_t msn, std::uint8_t syndrome = kAck) {
    return wire.answer(Opcode::acknowledge, psn, syndrome, msn);
  }
  std::uint32_t write(Opcode opcode, std::uint32_t psn, std::uint32_t bytes, std::uint32_t length) {
    auto headers = Wire::headers(opcode, psn);
    headers.reth = roce::Reth{kAddress, {kRkey}, length};
    return wire.request(headers, bytes);
  }
  void read(std::uint32_t psn, std::uint32_t msn, std::uint32_t bytes, std::byte fill) {
    auto headers = Wire::headers(Opcode::read_request, psn);
    headers.reth = roce::Reth{kAddress, {kRkey}, bytes};
    wire.request(headers);
    headers = Wire::headers(Opcode::read_response_only, psn, false);
    headers.aeth = Aeth{kAck, msn};
    wire.answer(headers, std::vector(bytes, fill));
  }

  Workload implied() {
    capture_ = replay::parse_capture(wire.frames);
    return implied_workload(capture_);
  }
  // The queue pair with requests.
  static const QueuePair& requester(const Workload& workload) {
    for (const auto& qp : workload.qps)
      if (!qp.requests.empty()) return qp;
    throw std::runtime_error("no queue pair has requests");
  }

  Wire wire;

 private:
  replay::WireCapture capture_;
};

TEST_F(ImpliedWorkload, RequestsOfOneConnection) {
  send(10);
  ack(10, 1);
  write(Opcode::write_only, 11, 64, 64);
  ack(11, 2);
  const auto workload = implied();
  ASSERT_EQ(workload.hosts.size(), 2u);
  EXPECT_EQ(workload.hosts[0].address, Wire::address(replay::test::kPeer));
  ASSERT_EQ(workload.qps.size(), 2u);
  const auto& from = workload.qps[0];
  const auto& to = workload.qps[1];
  EXPECT_EQ(from.number.value, Wire::kPeerQpn);
  EXPECT_EQ(to.number.value, Wire::kQpn);
  EXPECT_EQ(from.peer, 1u);
  EXPECT_EQ(to.peer, 0u);
  EXPECT_EQ(from.sq_psn, roce::Psn(10));
  EXPECT_EQ(to.rq_psn, roce::Psn(10));
  ASSERT_EQ(from.requests.size(), 2u);
  EXPECT_EQ(from.requests[0].at, Duration{});
  EXPECT_EQ(from.requests[0].opcode, nic::SendOpcode::send);
  EXPECT_EQ(from.requests[0].payload, Wire::pattern(16));
  EXPECT_EQ(from.requests[1].at, Duration{2'000'000});
  EXPECT_EQ(from.requests[1].opcode, nic::SendOpcode::write);
  EXPECT_EQ(from.requests[1].address, kAddress);
  EXPECT_EQ(from.requests[1].outcome, roce::Status::success);
  ASSERT_EQ(to.receives.size(), 1u);
  EXPECT_EQ(to.receives[0].bytes, 16u);
  EXPECT_EQ(to.receives[0].at, std::nullopt);
  ASSERT_EQ(workload.hosts[1].regions.size(), 1u);
  EXPECT_TRUE(workload.hosts[1].regions[0].has(kRkey, kAddress, 64));
  EXPECT_THAT(workload.left_out, IsEmpty());
}

TEST_F(ImpliedWorkload, APacketThatIsSentAgainIsNoRequest) {
  send(10);
  send(10);
  ack(10, 1);
  const auto workload = implied();
  EXPECT_EQ(workload.requests(), 1u);
  EXPECT_EQ(workload.sent_again, 1u);
  EXPECT_THAT(workload.left_out, ElementsAre(HasSubstr("1 retransmitted packets do not count as requests")));
}

TEST_F(ImpliedWorkload, AMessageThatTheCaptureCutsIsLeftOut) {
  send(10);
  ack(10, 1);
  write(Opcode::write_first, 11, 1024, 2048);
  const auto workload = implied();
  EXPECT_EQ(workload.requests(), 1u);
  EXPECT_EQ(workload.seen_in_part, 1u);
  EXPECT_THAT(workload.left_out, Contains(HasSubstr("1 requests are incomplete")));
}

// A packet was lost before the place of the capture, and arrives when it is sent again.
TEST_F(ImpliedWorkload, APacketThatCameLate) {
  send(10);
  const auto third = send(12);
  ack(11, 1, Aeth::kSequenceError);
  const auto second = send(11);
  send(12);
  ack(12, 3);
  const auto workload = implied();
  const auto& requests = requester(workload).requests;
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[1].frame, second);
  EXPECT_EQ(requests[2].frame, third);
  EXPECT_LE(requests[1].at, requests[2].at) << "in the order of PSNs";
  EXPECT_EQ(workload.sent_again, 1u);
  EXPECT_EQ(workload.qps[1].receives.size(), 3u);
}

TEST_F(ImpliedWorkload, APacketThatNeverCameEndsAReliableConnection) {
  send(10);
  ack(10, 1);
  const auto behind = send(12);
  const auto workload = implied();
  EXPECT_EQ(workload.requests(), 1u);
  EXPECT_THAT(workload.left_out, Contains(HasSubstr("packets are missing before frame " + std::to_string(behind))));
}

TEST_F(ImpliedWorkload, AReceiveThatWasLate) {
  send(10);
  ack(10, 1);
  send(11);
  ack(11, 1, kNotReady);
  const auto again = send(11);
  ack(11, 2);
  send(12);
  ack(12, 3);
  const auto workload = implied();
  const auto& receives = workload.qps[1].receives;
  ASSERT_EQ(receives.size(), 3u);
  EXPECT_EQ(receives[0].at, std::nullopt);
  EXPECT_EQ(receives[1].at, Duration{(again - 1) * 1'000'000});
  EXPECT_EQ(receives[2].at, receives[1].at) << "its message may come at once";
  EXPECT_EQ(workload.qps[1].min_rnr_timer, 14);
}

TEST_F(ImpliedWorkload, MemoryIsWhatTheFirstAnswersTell) {
  read(10, 1, 8, std::byte{0xaa});
  read(11, 2, 16, std::byte{0xbb});
  const auto workload = implied();
  InitialMemory known;
  std::vector<std::byte> bytes(16);
  for (const auto& part : workload.hosts[1].contents)
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto at = kAddress + i;
      if (at >= part.address && at < part.address + part.bytes.size()) bytes[i] = part.bytes[at - part.address];
    }
  for (std::size_t i = 0; i < bytes.size(); ++i)
    EXPECT_EQ(bytes[i], i < 8 ? std::byte{0xaa} : std::byte{0xbb}) << "byte " << i;
}

// Bytes that a request wrote first do not show the initial contents.
TEST_F(ImpliedWorkload, MemoryThatARequestWroteBefore) {
  write(Opcode::write_only, 10, 8, 8);
  ack(10, 1);
  read(11, 2, 8, std::byte{0xaa});
  EXPECT_THAT(implied().hosts[1].contents, IsEmpty());
}

TEST_F(ImpliedWorkload, AReadOfMoreThanTheCaptureHolds) {
  auto headers = Wire::headers(Opcode::read_request, 10);
  headers.reth = roce::Reth{kAddress, {kRkey}, 1u << 30};
  wire.request(headers);
  EXPECT_THAT([&] { implied(); }, ThrowsMessage<ConfigError>(HasSubstr("READs request 1073741824 bytes")));
}

TEST_F(ImpliedWorkload, ACaptureWithoutARequest) {
  ack(10, 1);
  EXPECT_THAT([&] { implied(); }, ThrowsMessage<ConfigError>(HasSubstr("there is nothing to post")));
}

TEST(JoinedRegions, NearPartsOfAKeyAreOne) {
  const auto joined = joined_regions({{1, 0x10000, 100}, {1, 0x12000, 0x2000}, {2, 0x12000, 1}, {1, 0x10000000, 1}});
  ASSERT_EQ(joined.size(), 3u);
  EXPECT_EQ(joined[0].address, 0x10000u);
  EXPECT_EQ(joined[0].length, 0x4000u);
  EXPECT_EQ(joined[1].address, 0x10000000u);
  EXPECT_EQ(joined[2].rkey, 2u);
}

TEST(JoinedRegions, AnEndBehindTheLastAddress) {
  EXPECT_THAT(joined_regions({{1, ~0ull - 10, 100}, {1, 0, 0}}), IsEmpty());
}

}  // namespace
}  // namespace rnicsim::sim::wire_workload::implied_workload_test
