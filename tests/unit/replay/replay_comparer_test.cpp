// SPDX-License-Identifier: Apache-2.0
// The comparer alone: it finds a difference in each field, and accepts exactly the listed equivalences.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/replay/comparer.h"

namespace rnicsim::sim::replay::comparer_test {
namespace {

using roce::Aeth;
using roce::Opcode;

Answer answer(std::uint32_t frame, Opcode opcode, std::uint32_t psn, std::uint32_t msn,
              std::uint8_t syndrome = Aeth::kAck | Aeth::kNoCredits) {
  Answer made{.frame = frame, .headers = {}, .payload = {}};
  made.headers.bth.opcode = opcode;
  made.headers.bth.psn = roce::Psn(psn);
  made.headers.bth.destination = {7};
  if (roce::info(opcode).has(roce::header::kAeth)) made.headers.aeth = Aeth{syndrome, msn};
  return made;
}
Answer ack(std::uint32_t frame, std::uint32_t psn, std::uint32_t msn) {
  return answer(frame, Opcode::acknowledge, psn, msn);
}
Payload bytes(std::initializer_list<std::uint8_t> values) {
  std::vector<std::byte> made;
  for (const auto value : values) made.push_back(std::byte(value));
  return Payload::copy_of(made);
}

// Requests of one packet with PSN 1, 2, 3 ..., each with AckReq, in frames 10, 20, 30 ...; answers follow by one frame
// number.
class Comparer : public testing::Test {
 protected:
  Comparer() {
    for (std::uint32_t n = 1; n <= 6; ++n)
      asked.push_back({.frame = 10 * n, .last = roce::Psn(n), .ack_request = true, .executed = true, .msn = n});
  }
  void both(std::uint32_t n) {
    ours.push_back(ack(10 * n, n, n));
    theirs.push_back(ack(10 * n + 1, n, n));
  }
  void duplicate(std::uint32_t frame, std::uint32_t psn) {
    asked.push_back({.frame = frame, .last = roce::Psn(psn), .duplicate = true});
    std::ranges::sort(asked, {}, &Asked::frame);
  }
  Comparison run() const { return compare(asked, ours, theirs); }
  void expect_used(const Comparison& result, Equivalence equivalence, std::uint64_t times) const {
    EXPECT_EQ(result.differences.size(), 0u);
    for (const auto& row : kEquivalences)
      EXPECT_EQ(result.equivalences[static_cast<std::size_t>(row.equivalence)],
                row.equivalence == equivalence ? times : 0)
          << row.name;
  }
  void expect_field(const std::string& field) const {
    const auto result = run();
    ASSERT_EQ(result.differences.size(), 1u) << field;
    ASSERT_EQ(result.differences[0].fields.size(), 1u) << field;
    EXPECT_EQ(result.differences[0].fields[0].field, field);
    EXPECT_NE(result.differences[0].fields[0].ours, result.differences[0].fields[0].theirs);
  }

  std::vector<Asked> asked;
  std::vector<Answer> ours, theirs;
};

TEST_F(Comparer, EqualAnswersMatch) {
  for (std::uint32_t n = 1; n <= 6; ++n) both(n);
  const auto result = run();
  EXPECT_EQ(result.matched, 6u);
  expect_used(result, Equivalence::ack_credits, 0);
}

TEST_F(Comparer, FindsEachFieldOfAnAck) {
  for (std::uint32_t n = 1; n <= 3; ++n) both(n);
  const auto right = theirs;
  const auto wrong = [&](const char* field, auto change) {
    theirs = right;
    change(theirs[1].headers);
    expect_field(field);
  };
  wrong("msn", [](auto& headers) { headers.aeth->msn = 3; });
  wrong("syndrome", [](auto& headers) { headers.aeth->syndrome = Aeth::kRnrNak | 0x1f; });
  wrong("syndrome", [](auto& headers) { headers.aeth->syndrome |= 0x80; });
  wrong("psn", [](auto& headers) { headers.bth.psn = roce::Psn(0x800000); });
  wrong("destination", [](auto& headers) { headers.bth.destination = {8}; });
  wrong("pkey", [](auto& headers) { headers.bth.pkey = 0x7fff; });
  wrong("solicited", [](auto& headers) { headers.bth.solicited = true; });
  wrong("ack_request", [](auto& headers) { headers.bth.ack_request = true; });
  wrong("pad", [](auto& headers) { headers.bth.pad = 1; });
  wrong("opcode", [](auto& headers) { headers.bth.opcode = Opcode::read_response_only; });
}

TEST_F(Comparer, FindsAWrongNak) {
  ours.push_back(answer(10, Opcode::acknowledge, 1, 0, Aeth::kInvalidRequest));
  theirs.push_back(answer(11, Opcode::acknowledge, 1, 0, Aeth::kRemoteAccessError));
  expect_field("syndrome");
}

TEST_F(Comparer, FindsAWrongRnrTimer) {
  ours.push_back(answer(10, Opcode::acknowledge, 1, 0, Aeth::kRnrNak | 12));
  theirs.push_back(answer(11, Opcode::acknowledge, 1, 0, Aeth::kRnrNak | 13));
  expect_field("syndrome");
}

TEST_F(Comparer, FindsPayload) {
  ours.push_back(answer(10, Opcode::read_response_only, 1, 1));
  theirs.push_back(answer(11, Opcode::read_response_only, 1, 1));
  ours[0].payload = bytes({1, 2, 3, 4});
  theirs[0].payload = bytes({1, 2, 5, 4});
  expect_field("payload");
  theirs[0].payload = bytes({1, 2, 3, 4, 5, 6, 7, 8});
  expect_field("payload");
  theirs[0].payload = bytes({1, 2, 3, 4});
  EXPECT_TRUE(run().differences.empty());
}

TEST_F(Comparer, FindsAWrongOriginal) {
  ours.push_back(answer(10, Opcode::atomic_acknowledge, 1, 1));
  theirs.push_back(answer(11, Opcode::atomic_acknowledge, 1, 1));
  ours[0].headers.atomic_ack = 5;
  theirs[0].headers.atomic_ack = 6;
  expect_field("original");
}

TEST_F(Comparer, ThePadIsNotTheEngines) {
  ours.push_back(answer(10, Opcode::read_response_only, 1, 1));
  theirs.push_back(answer(11, Opcode::read_response_only, 1, 1));
  ours[0].payload = theirs[0].payload = bytes({1, 2, 3});
  theirs[0].headers.bth.pad = 1;
  EXPECT_TRUE(run().differences.empty());
}

TEST_F(Comparer, AnAnswerComesAfterItsRequest) {
  both(1);
  theirs[0].frame = 9;
  expect_field("order");
}

TEST_F(Comparer, AcceptsOtherCredits) {
  both(1);
  theirs[0].headers.aeth->syndrome = Aeth::kAck | 3;
  expect_used(run(), Equivalence::ack_credits, 1);
}

TEST_F(Comparer, AcceptsTheMigrationState) {
  both(1);
  theirs[0].headers.bth.migrated = false;
  expect_used(run(), Equivalence::migration_state, 1);
}

TEST_F(Comparer, AcceptsCongestionMarks) {
  both(1);
  theirs[0].headers.bth.becn = true;
  expect_used(run(), Equivalence::congestion_marks, 1);
}

TEST_F(Comparer, TheirAckMayStandForSeveral) {
  for (std::uint32_t n = 1; n <= 4; ++n) ours.push_back(ack(10 * n, n, n));
  theirs = {ack(35, 3, 3), ack(41, 4, 4)};
  const auto result = run();
  EXPECT_EQ(result.matched, 2u);
  expect_used(result, Equivalence::ack_coalesced, 2);
}

TEST_F(Comparer, OursMayStandForSeveral) {
  for (std::uint32_t n = 1; n <= 4; ++n) theirs.push_back(ack(10 * n + 1, n, n));
  ours = {ack(30, 3, 3), ack(40, 4, 4)};
  theirs[2].frame = 31;
  expect_used(run(), Equivalence::ack_coalesced, 2);
}

TEST_F(Comparer, BothMayLeaveOutAcks) {
  ours = {ack(10, 1, 1), ack(30, 3, 3)};
  theirs = {ack(21, 2, 2), ack(31, 3, 3)};
  expect_used(run(), Equivalence::ack_coalesced, 2);
}

TEST_F(Comparer, AReadResponseOrNakStandsForAcks) {
  ours = {ack(10, 1, 1), answer(20, Opcode::read_response_only, 2, 2), ack(30, 3, 3),
          answer(40, Opcode::acknowledge, 4, 3, Aeth::kRemoteAccessError)};
  theirs = {ours[1], ours[3]};
  for (auto& each : theirs) each.frame += 1;
  expect_used(run(), Equivalence::ack_coalesced, 2);
}

TEST_F(Comparer, OnlyAcksAreCoalesced) {
  ours = {answer(10, Opcode::read_response_only, 1, 1), ack(20, 2, 2)};
  theirs = {ack(21, 2, 2)};
  ASSERT_EQ(run().differences.size(), 1u);
  EXPECT_FALSE(run().differences[0].theirs);
  ours = {answer(10, Opcode::acknowledge, 1, 0, Aeth::kRnrNak | 1), ack(20, 2, 2)};
  EXPECT_EQ(run().differences.size(), 1u);
}

TEST_F(Comparer, AnAckThatNobodyAskedForIsADifference) {
  asked[1].ack_request = false;
  ours = {ack(10, 1, 1), ack(30, 3, 3)};
  theirs = {ack(11, 1, 1), ack(21, 2, 2), ack(31, 3, 3)};
  ASSERT_EQ(run().differences.size(), 1u);
  EXPECT_FALSE(run().differences[0].ours);
}

TEST_F(Comparer, ACoalescedAckMustCountRight) {
  ours = {ack(10, 1, 1), ack(30, 3, 3)};
  theirs = {ack(11, 1, 1), ack(21, 2, 9), ack(31, 3, 3)};
  EXPECT_EQ(run().differences.size(), 1u);
}

TEST_F(Comparer, AnAckFromTheFutureStandsForNothing) {
  for (std::uint32_t n = 1; n <= 5; ++n) both(n);
  theirs[0].headers.bth.psn = roce::Psn(3);
  theirs[0].headers.aeth->msn = 3;
  EXPECT_FALSE(run().differences.empty());
}

TEST_F(Comparer, TheLastAnswerMustCome) {
  both(1);
  ours.push_back(ack(20, 2, 2));
  ASSERT_EQ(run().differences.size(), 1u);
  EXPECT_FALSE(run().differences[0].theirs);
  EXPECT_EQ(run().differences[0].frame, 20u);
}

TEST_F(Comparer, AnAnswerOnlyTheyGiveIsADifference) {
  both(1);
  theirs.push_back(ack(21, 2, 2));
  ASSERT_EQ(run().differences.size(), 1u);
  EXPECT_FALSE(run().differences[0].ours);
}

TEST_F(Comparer, DuplicatesMayBeAcknowledgedTogether) {
  both(1);
  duplicate(12, 1);
  duplicate(13, 1);
  ours.push_back(ack(12, 1, 1));
  ours.push_back(ack(13, 1, 1));
  theirs.push_back(ack(14, 1, 1));
  expect_used(run(), Equivalence::duplicate_ack, 1);
  ours = {ack(10, 1, 1), ack(13, 1, 1)};
  theirs = {ack(11, 1, 1), ack(14, 1, 1), ack(15, 1, 1)};
  expect_used(run(), Equivalence::duplicate_ack, 1);
  theirs.push_back(ack(16, 1, 1));  // one more than was requested
  EXPECT_EQ(run().differences.size(), 1u);
}

TEST_F(Comparer, ADuplicateMustBeAcknowledged) {
  both(1);
  duplicate(12, 1);
  ours.push_back(ack(12, 1, 1));
  EXPECT_EQ(run().differences.size(), 1u);
}

TEST_F(Comparer, AnAckGivenTwiceForOneRequestIsADifference) {
  both(1);
  theirs.push_back(ack(15, 1, 1));
  both(2);
  EXPECT_EQ(run().differences.size(), 1u);
}

TEST_F(Comparer, OrderCounts) {
  for (std::uint32_t n = 1; n <= 3; ++n) {
    ours.push_back(answer(10, Opcode::read_response_middle, n, 0));
    theirs.push_back(answer(10 + n, Opcode::read_response_middle, n, 0));
  }
  std::swap(theirs[0].headers, theirs[1].headers);
  EXPECT_FALSE(run().differences.empty());
}

TEST_F(Comparer, OneFaultShowsOnce) {
  for (std::uint32_t n = 1; n <= 6; ++n) {
    ours.push_back(answer(5, Opcode::read_response_middle, n, 0));
    theirs.push_back(answer(10 + n, Opcode::read_response_middle, n, 0));
  }
  const auto right = theirs;
  theirs.erase(theirs.begin() + 2);
  EXPECT_EQ(run().differences.size(), 1u);
  theirs = right;
  theirs.insert(theirs.begin() + 2, theirs[1]);
  EXPECT_EQ(run().differences.size(), 1u);
  theirs = right;
  theirs[2].headers.bth.psn = roce::Psn(77);
  EXPECT_EQ(run().differences.size(), 1u);
}

TEST_F(Comparer, AgreementIsFoundAgainBehindWhatStandsAlone) {
  for (std::uint32_t n = 1; n <= 9; ++n) {
    ours.push_back(answer(5, Opcode::read_response_middle, n, 0));
    theirs.push_back(answer(10 + n, Opcode::read_response_middle, n, 0));
  }
  const auto right = theirs;
  theirs.erase(theirs.begin() + 2, theirs.begin() + 6);
  EXPECT_EQ(run().differences.size(), 4u);
  EXPECT_EQ(run().matched, 5u);
  theirs = right;
  for (int i = 0; i < 3; ++i) theirs.insert(theirs.begin() + 4, answer(14, Opcode::read_response_middle, 99, 0));
  EXPECT_EQ(run().differences.size(), 3u);
  EXPECT_EQ(run().matched, 9u);
}

// Soft-RoCE's two NAKs, each for its own request.
class BehindRnr : public Comparer {
 protected:
  BehindRnr() {
    for (auto& each : asked) each.executed = false;
    ours = {answer(10, Opcode::acknowledge, 1, 0, Aeth::kRnrNak | 4)};
    theirs = {answer(21, Opcode::acknowledge, 1, 0, Aeth::kRnrNak | 4),
              answer(22, Opcode::acknowledge, 1, 0, Aeth::kSequenceError)};
  }
};

TEST_F(BehindRnr, TheSequenceNakIsFree) { expect_used(run(), Equivalence::nak_behind_rnr, 1); }

TEST_F(BehindRnr, ButNotIfItNamesAnotherPsnOrMsn) {
  theirs[1].headers.bth.psn = roce::Psn(2);
  EXPECT_EQ(run().differences.size(), 1u);
  theirs[1].headers.bth.psn = roce::Psn(1);
  theirs[1].headers.aeth->msn = 1;
  EXPECT_EQ(run().differences.size(), 1u);
}

TEST_F(BehindRnr, ButNotIfNothingCameInBetween) {
  theirs[0].frame = 11;
  theirs[1].frame = 12;
  EXPECT_EQ(run().differences.size(), 1u);
}

TEST_F(BehindRnr, ButNotTwice) {
  theirs.push_back(answer(23, Opcode::acknowledge, 1, 0, Aeth::kSequenceError));
  EXPECT_EQ(run().differences.size(), 1u);
}

TEST_F(BehindRnr, ButNotAnotherNak) {
  theirs[1].headers.aeth->syndrome = Aeth::kInvalidRequest;
  EXPECT_EQ(run().differences.size(), 1u);
}

TEST_F(BehindRnr, ButNotFromUs) {
  std::swap(ours, theirs);
  for (auto& each : theirs) each.frame = 23;
  EXPECT_EQ(run().differences.size(), 1u);
}

TEST_F(BehindRnr, ButNotBehindAnAck) {
  ours[0] = ack(10, 1, 1);
  theirs[0] = ack(21, 1, 1);
  theirs[1].headers.aeth->msn = 1;
  EXPECT_EQ(run().differences.size(), 1u);
}

// Frame 10 requests the rest of a READ.
class Resumed : public Comparer {
 protected:
  Resumed() {
    asked[0].duplicate = asked[0].resumed = true;
    ours = {answer(10, Opcode::read_response_first, 1, 1), answer(10, Opcode::read_response_last, 2, 1)};
    theirs = {answer(11, Opcode::read_response_middle, 1, 1), answer(12, Opcode::read_response_last, 2, 1)};
  }
};

TEST_F(Resumed, TheirsMayGoOnWhereItWas) {
  expect_used(run(), Equivalence::read_resumed, 1);
  ours = {answer(10, Opcode::read_response_only, 1, 1)};
  theirs = {answer(11, Opcode::read_response_last, 1, 1)};
  expect_used(run(), Equivalence::read_resumed, 1);
}

TEST_F(Resumed, ButOnlyWhereItGoesOn) {
  asked[0].resumed = false;
  expect_field("opcode");
}

TEST_F(Resumed, ButNotOurs) {
  std::swap(ours, theirs);
  ours[0].frame = ours[1].frame = 10;
  theirs[0].frame = theirs[1].frame = 11;
  expect_field("opcode");
}

TEST_F(Resumed, ButNotAsAnotherPacket) {
  theirs[0] = answer(11, Opcode::read_response_only, 1, 1);
  expect_field("opcode");
}

TEST_F(Resumed, ButWithItsPayload) {
  ours[0].payload = bytes({1, 2, 3, 4});
  theirs[0].payload = bytes({1, 2, 3, 5});
  expect_field("payload");
}

// Messages are paired by the packet that completed them.
TEST(Deliveries, EachDifferenceIsFoundOnce) {
  const auto message = [](std::uint32_t frame, std::size_t size) {
    Delivery delivery;
    delivery.frame = frame;
    delivery.bytes.resize(size);
    return delivery;
  };
  const std::vector<Delivery> right{message(1, 10), message(3, 20), message(7, 30)};
  EXPECT_EQ(compare_deliveries(right, right).matched, 3u);
  const auto wrong = [&](auto change) {
    auto altered = right;
    change(altered);
    EXPECT_EQ(compare_deliveries(altered, right).differences.size(), 1u);
    EXPECT_EQ(compare_deliveries(right, altered).differences.size(), 1u);
  };
  wrong([](auto& list) { list.erase(list.begin() + 1); });
  wrong([&](auto& list) { list.insert(list.begin() + 1, message(2, 5)); });
  wrong([](auto& list) { list[1].bytes[19] = std::byte{1}; });
  wrong([](auto& list) { list[1].bytes.pop_back(); });
  wrong([](auto& list) { list[1].immediate = 0; });
  wrong([](auto& list) { list[1].invalidate = 7; });
  wrong([](auto& list) { list[1].source = 7; });
  wrong([](auto& list) { list[1].is_write = true; });
}

TEST_F(Comparer, PsnsAndMsnsGoRound) {
  asked.clear();
  for (std::uint32_t n = 0; n < 4; ++n) {
    const auto number = (0xfffffe + n) & 0xffffff;
    asked.push_back(
        {.frame = 10 * n + 1, .last = roce::Psn(number), .ack_request = true, .executed = true, .msn = number});
    ours.push_back(ack(10 * n + 1, number, number));
  }
  theirs = {ack(36, 1, 1)};
  expect_used(run(), Equivalence::ack_coalesced, 3);
}

}  // namespace
}  // namespace rnicsim::sim::replay::comparer_test
