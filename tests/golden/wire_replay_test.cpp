// SPDX-License-Identifier: Apache-2.0
// Packets of two Linux guests with Soft-RoCE, replayed as each of them; and the same capture with one error, which must
// show. Frame numbers are those of the capture (traces/README.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "model/nic/engine/engine_factory.h"
#include "model/nic/engine/jittered_engine.h"
#include "model/nic/engine/qp_context.h"
#include "model/nic/seam/qp_engine.h"
#include "sim/replay/replay.h"
#include "tests/support/wire_frames.h"

namespace rnicsim::sim::replay::wire_replay_test {
namespace {

constexpr std::size_t kMsnAt = 14 + 20 + 8 + 12 + 1;  // offset of the 3-byte MSN in an answer
constexpr std::size_t kSyndromeAt = 14 + 20 + 8 + 12;
constexpr std::size_t kPsnAt = 14 + 20 + 8 + 9;
constexpr std::size_t kDestinationAt = 14 + 20 + 8 + 5;
constexpr std::size_t kResponsePayloadAt = 14 + 20 + 8 + 12;  // offset in a READ_RESPONSE_MIDDLE

std::filesystem::path capture_path() {
  return std::filesystem::path(RNICSIM_SOURCE_DIR) / "traces" / "wire" / "rxe-two-guests.pcap";
}

class WireReplay : public testing::Test {
 protected:
  CapturedFrame& frame(std::uint32_t number) { return *std::ranges::find(frames, number, &CapturedFrame::number); }
  void flip(std::uint32_t number, std::size_t at, std::uint8_t bits) {
    frame(number).bytes.at(at) ^= std::byte{bits};
    test::seal(frame(number));
  }
  void drop(std::uint32_t number) {
    std::erase_if(frames, [&](const CapturedFrame& each) { return each.number == number; });
  }
  // Exchanges the contents of two frames; their times stay.
  void swap(std::uint32_t a, std::uint32_t b) {
    std::swap(frame(a).bytes, frame(b).bytes);
    std::swap(frame(a).length, frame(b).length);
  }
  Replay run(const char* address) {
    const auto engine_owner = nic::make_model_engine({});
    auto& engine = *engine_owner;
    return replay_frames(frames, *parse_address(address), engine);
  }
  std::vector<Difference> differences() {
    const auto replay = run("10.0.0.1");
    auto all = replay.strays;
    for (const auto& comparison : replay.comparisons)
      all.insert(all.end(), comparison.differences.begin(), comparison.differences.end());
    EXPECT_EQ(all.size(), replay.differences());
    return all;
  }
  void expect_one(const std::string& field, std::uint32_t number) {
    const auto found = differences();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].frame, number);
    ASSERT_EQ(found[0].fields.size(), 1u);
    EXPECT_EQ(found[0].fields[0].field, field);
  }

  std::vector<CapturedFrame> frames = read_capture(capture_path());
};

TEST_F(WireReplay, EveryPacketParsesWithTheRightIcrc) {
  const auto capture = parse_capture(frames);
  EXPECT_EQ(capture.frames, 212u);
  EXPECT_EQ(capture.roce_frames(), 160u);
  EXPECT_EQ(capture.packets.size(), 160u);
  EXPECT_EQ(capture.icrc_right(), 160u);
}

// wire_captures_test.cpp checks that the payloads agree.
TEST_F(WireReplay, WhatIsReadIsCheckedWhereTheWireShowedIt) {
  // READs of 8 and 5000 bytes and two atomics, all from memory that WRITEs and atomics had filled.
  const auto listener = run("10.0.0.1").memory_use;
  EXPECT_EQ(listener.checked, 8u + 5000u + 8u + 8u);
  EXPECT_EQ(listener.learnt, 0u);
  // rping's source buffer: its program fills the buffer, which the capture cannot show.
  const auto caller = run("10.0.0.2").memory_use;
  EXPECT_EQ(caller.checked, 0u);
  EXPECT_EQ(caller.learnt, 2u * 64u);
}

TEST_F(WireReplay, EachPacketHasOneRole) {
  struct End {
    const char* address;
    std::size_t requests, answers, sent;
  };
  for (const auto& end : {End{"10.0.0.1", 41, 23, 53}, End{"10.0.0.2", 28, 13, 66}}) {
    const auto replay = run(end.address);
    std::size_t sum = 0;
    for (const auto count : replay.environment.roles) sum += count;
    EXPECT_EQ(sum, replay.capture.packets.size());
    EXPECT_EQ(replay.environment.count(Role::request), end.requests);
    EXPECT_EQ(replay.environment.count(Role::answer), end.answers);
    EXPECT_EQ(replay.environment.count(Role::uc), 40u);
    EXPECT_EQ(replay.environment.count(Role::ud), 10u);
    EXPECT_EQ(replay.environment.count(Role::connection_management), 5u);
    EXPECT_EQ(replay.compared(), end.answers + end.sent);
    // Every packet of Soft-RoCE has another MigReq bit.
    EXPECT_EQ(replay.equivalences()[static_cast<std::size_t>(Equivalence::migration_state)], replay.compared());
  }
}

TEST_F(WireReplay, FindsAWrongMsn) {
  flip(12, kMsnAt + 2, 1);
  expect_one("msn", 12);
}

TEST_F(WireReplay, FindsAWrongMsnInAReadResponse) {
  flip(29, kMsnAt + 2, 1);
  expect_one("msn", 29);
}

TEST_F(WireReplay, FindsAWrongPsn) {
  flip(12, kPsnAt + 2, 1);
  expect_one("psn", 12);
}

TEST_F(WireReplay, FindsEachFlippedBitOfThePsn) {
  for (unsigned bit = 0; bit < 24; ++bit) {
    SCOPED_TRACE(bit);
    flip(14, kPsnAt + 2 - bit / 8, static_cast<std::uint8_t>(1u << bit % 8));
    EXPECT_FALSE(differences().empty());
    flip(14, kPsnAt + 2 - bit / 8, static_cast<std::uint8_t>(1u << bit % 8));
  }
}

TEST_F(WireReplay, FindsAWrongSyndrome) {
  for (const std::uint8_t other : {0x20, 0x40, 0x60, 0x80}) {  // the credit count in the syndrome is free
    SCOPED_TRACE(other);
    flip(16, kSyndromeAt, other);
    EXPECT_FALSE(differences().empty());
    flip(16, kSyndromeAt, other);
  }
}

TEST_F(WireReplay, CreditsAreFree) {
  flip(16, kSyndromeAt, 0x1f);
  const auto replay = run("10.0.0.1");
  EXPECT_EQ(replay.differences(), 0u);
  EXPECT_EQ(replay.equivalences()[static_cast<std::size_t>(Equivalence::ack_credits)], 1u);
}

TEST_F(WireReplay, FindsAWrongPayloadByte) {
  flip(31, kResponsePayloadAt + 1000, 0x10);
  expect_one("payload", 31);
}

TEST_F(WireReplay, FindsAWrongByteOfAWrite) {
  flip(19, kResponsePayloadAt + 5, 0x10);  // a WRITE_MIDDLE; a later READ returns its data
  expect_one("payload", 31);
}

TEST_F(WireReplay, FindsAWrongOriginal) {
  flip(37, kSyndromeAt + 4 + 7, 1);
  expect_one("original", 37);
}

TEST_F(WireReplay, FindsAWrongDestination) {
  flip(16, kDestinationAt + 2, 0x40);
  const auto found = differences();
  ASSERT_EQ(found.size(), 1u);  // our ACK is covered by the next one; the changed packet belongs to no QP
  EXPECT_EQ(found[0].frame, 16u);
  EXPECT_FALSE(found[0].ours);
}

TEST_F(WireReplay, FindsADroppedReadResponse) {
  drop(31);
  const auto found = differences();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].theirs);
  EXPECT_EQ(found[0].frame, 28u);
}

TEST_F(WireReplay, FindsADroppedAtomicAcknowledge) {
  drop(35);
  ASSERT_EQ(differences().size(), 1u);
}

TEST_F(WireReplay, FindsADroppedLastAck) {
  drop(206);
  const auto found = differences();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].frame, 205u);
}

TEST_F(WireReplay, AnAckInTheMiddleMayBeLeftToTheNext) {
  drop(12);
  const auto replay = run("10.0.0.1");
  EXPECT_EQ(replay.differences(), 0u);
  EXPECT_EQ(replay.equivalences()[static_cast<std::size_t>(Equivalence::ack_coalesced)], 1u);
}

TEST_F(WireReplay, FindsSwappedReadResponses) {
  swap(30, 31);
  EXPECT_FALSE(differences().empty());
}

TEST_F(WireReplay, FindsSwappedAcks) {
  swap(12, 14);
  EXPECT_FALSE(differences().empty());
}

TEST_F(WireReplay, FindsAnAnswerBeforeItsRequest) {
  swap(205, 206);
  expect_one("order", 205);
}

TEST_F(WireReplay, FindsAnAnswerGivenTwice) {
  auto again = frame(14);
  again.number = frame(15).number;
  drop(15);  // a WRITE; its PSN is then missing
  frames.insert(std::ranges::find(frames, 16u, &CapturedFrame::number), again);
  EXPECT_FALSE(differences().empty());
}

TEST_F(WireReplay, FindsAnAnswerThatIsCorrupt) {
  frame(31).bytes.at(kResponsePayloadAt) ^= std::byte{1};
  const auto replay = run("10.0.0.1");
  EXPECT_EQ(replay.capture.icrc_right(), 159u);
  EXPECT_EQ(replay.strays.size(), 1u);
  EXPECT_EQ(replay.differences(), 2u);  // the sent packet is unknown, and our packet has no counterpart
}

TEST(Documentation, ListsEachEquivalence) {
  std::ifstream file(std::filesystem::path(RNICSIM_SOURCE_DIR) / "docs" / "replay.md");
  std::vector<std::string> listed;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("| `")) listed.push_back(line.substr(3, line.find('`', 3) - 3));
  std::vector<std::string> known;
  for (const auto& row : kEquivalences) known.emplace_back(row.name);
  EXPECT_EQ(listed, known);
}

// An engine with a clock, or with delayed transactions: the replay waits for the engine.
TEST_F(WireReplay, AnEngineMayTakeItsTime) {
  nic::JitteredEngine engine({.delay = Duration{300'000}}, nic::make_model_engine({}));
  const auto replay = replay_frames(frames, *parse_address("10.0.0.1"), engine);
  EXPECT_GT(now(), Duration{});
  EXPECT_EQ(replay.differences(), 0u);
  EXPECT_EQ(replay.memory_use.checked, 8u + 5000u + 8u + 8u);
}

TEST_F(WireReplay, IsDeterministic) {
  const auto a = run("10.0.0.1");
  const auto b = run("10.0.0.1");
  EXPECT_EQ(a.equivalences(), b.equivalences());
  EXPECT_EQ(a.memory_use.checked, b.memory_use.checked);
}

}  // namespace
}  // namespace rnicsim::sim::replay::wire_replay_test
