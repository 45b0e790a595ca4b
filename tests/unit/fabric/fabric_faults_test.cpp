// SPDX-License-Identifier: Apache-2.0
// Frames that a fault rule selects, and their times and order at the end of the cable.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "model/fabric/link.h"

namespace rnicsim::fabric::faults_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Not;

// Header: opcode, QP, PSN, one byte each; opcode 0xff: not RoCE.
Frame frame_of(std::uint8_t opcode, std::uint8_t qp = 0, std::uint8_t psn = 0, std::size_t payload = 0) {
  const std::array header{std::byte{opcode}, std::byte{qp}, std::byte{psn}, std::byte{0}};
  const std::vector<std::byte> zeros(payload);
  return Frame::of(Payload::copy_of(header), Payload::copy_of(zeros), std::array<std::byte, 4>{});
}
// In a management datagram, the PSN is also the message.
constexpr std::uint8_t kDatagram = 0x64;
std::optional<FrameFacts> facts_of(const Frame& frame) {
  const auto bytes = frame.header_span();
  if (bytes[0] == std::byte{0xff}) return std::nullopt;
  const auto opcode = std::uint8_t(bytes[0]), qp = std::uint8_t(bytes[1]), psn = std::uint8_t(bytes[2]);
  FrameFacts facts{opcode, qp, psn, std::nullopt, 3};
  if (opcode == kDatagram && qp == 1) facts.management = psn;
  return facts;
}

// Numbers, from 1, of the selected frames among `frames` equal frames.
std::vector<int> struck(const FaultRule& rule, int frames, std::uint64_t seed = 1, std::uint32_t host = 0) {
  FaultRules rules({rule}, seed, host, facts_of);
  std::vector<int> numbers;
  for (int number = 1; number <= frames; ++number)
    if (rules.decide(frame_of(4))) numbers.push_back(number);
  return numbers;
}
bool strikes(const FaultRule& rule, const Frame& frame, std::uint32_t host = 0) {
  return FaultRules({rule}, 1, host, facts_of).decide(frame).has_value();
}

TEST(FaultRules, EveryMatch) { EXPECT_THAT(struck({}, 3), ElementsAre(1, 2, 3)); }

TEST(FaultRules, Nth) {
  EXPECT_THAT(struck({.nth = {{3, 3}}}, 10), ElementsAre(3));
  EXPECT_THAT(struck({.nth = {{2, 4}, {7, 7}}}, 10), ElementsAre(2, 3, 4, 7));
  EXPECT_THAT(struck({.nth = {{8, ~0ull}}}, 10), ElementsAre(8, 9, 10));
}

TEST(FaultRules, Count) {
  EXPECT_THAT(struck({.count = 2}, 10), ElementsAre(1, 2));
  EXPECT_THAT(struck({.nth = {{4, ~0ull}}, .count = 2}, 10), ElementsAre(4, 5));
  EXPECT_EQ(struck({.probability = 0.1, .count = 5}, 1000).size(), 5u);
}

TEST(FaultRules, NthCountsMatchesOnly) {
  std::bitset<256> sends;
  sends.set(4);
  FaultRules rules({{.opcodes = sends, .nth = {{2, 2}}}}, 1, 0, facts_of);
  EXPECT_FALSE(rules.decide(frame_of(4)));
  EXPECT_FALSE(rules.decide(frame_of(6)));
  EXPECT_FALSE(rules.decide(frame_of(0xff)));
  EXPECT_TRUE(rules.decide(frame_of(4)));
  EXPECT_FALSE(rules.decide(frame_of(4)));
}

TEST(FaultRules, Criteria) {
  EXPECT_TRUE(strikes({.host = 1}, frame_of(4), 1));
  EXPECT_FALSE(strikes({.host = 1}, frame_of(4), 0));
  EXPECT_TRUE(strikes({.qp = 7}, frame_of(4, 7)));
  EXPECT_FALSE(strikes({.qp = 7}, frame_of(4, 8)));
  EXPECT_TRUE(strikes({.psn = {{5, 9}}}, frame_of(4, 0, 9)));
  EXPECT_FALSE(strikes({.psn = {{5, 9}}}, frame_of(4, 0, 10)));
  EXPECT_TRUE(strikes({.psn = {{1, 2}, {10, 10}}}, frame_of(4, 0, 10)));
  EXPECT_FALSE(strikes({.qp = 7, .psn = {{5, 5}}}, frame_of(4, 7, 6)));
  EXPECT_TRUE(strikes({.qp = 7, .psn = {{5, 5}}}, frame_of(4, 7, 5)));
}

TEST(FaultRules, Messages) {
  const FaultRule rule{.management = std::bitset<16>().set(3)};
  EXPECT_TRUE(strikes(rule, frame_of(kDatagram, 1, 3)));
  EXPECT_FALSE(strikes(rule, frame_of(kDatagram, 1, 4)));
  EXPECT_FALSE(strikes(rule, frame_of(kDatagram, 2, 3)));
  EXPECT_FALSE(strikes(rule, frame_of(0xff, 1, 3)));
}

TEST(FaultRules, PsnRangeThatWraps) {
  const FaultRule rule{.psn = {{0xfffff0, 2}}};
  EXPECT_TRUE(strikes(rule, frame_of(4, 0, 0)));
  EXPECT_TRUE(strikes(rule, frame_of(4, 0, 2)));
  EXPECT_FALSE(strikes(rule, frame_of(4, 0, 3)));
}

TEST(FaultRules, AlienFrames) {
  EXPECT_TRUE(strikes({}, frame_of(0xff)));
  EXPECT_FALSE(strikes({.qp = 0}, frame_of(0xff)));
  EXPECT_FALSE(strikes({.psn = {{0, 0xffffff}}}, frame_of(0xff)));
  EXPECT_FALSE(strikes({.opcodes = std::bitset<256>().set()}, frame_of(0xff)));
}

TEST(FaultRules, ProbabilityIsThatOfTheDraws) {
  constexpr int kFrames = 100'000;
  const auto hits = struck({.probability = 1e-2}, kFrames).size();
  EXPECT_NEAR(static_cast<double>(hits), kFrames * 1e-2, 4 * std::sqrt(kFrames * 1e-2));
  EXPECT_THAT(struck({.probability = 0}, 1000), testing::IsEmpty());
  EXPECT_EQ(struck({.probability = 1}, 1000).size(), 1000u);
}

TEST(FaultRules, SameSeedSameChoice) {
  const FaultRule rule{.probability = 0.1};
  EXPECT_EQ(struck(rule, 1000, 5), struck(rule, 1000, 5));
  EXPECT_NE(struck(rule, 1000, 5), struck(rule, 1000, 6));
  EXPECT_NE(struck(rule, 1000, 5), struck(rule, 1000, 5 + (1ull << 32)));
  EXPECT_NE(struck(rule, 1000, 5, 0), struck(rule, 1000, 5, 1));
}

// The same choice on every machine and with every library.
TEST(FaultRules, ChoiceOfSeedOne) {
  EXPECT_THAT(struck({.probability = 0.1}, 60), ElementsAre(5, 11, 13, 30, 35, 46, 49, 50));
}

TEST(FaultRules, RulesOfDifferentPositionsChooseDifferently) {
  const FaultRule rule{.probability = 0.1};
  FaultRules rules({rule, rule}, 1, 0, facts_of);
  int first = 0, second = 0;
  for (int i = 0; i < 1000; ++i)
    if (const auto fault = rules.decide(frame_of(4))) ++(fault->position == 0 ? first : second);
  EXPECT_GT(first, 50);
  EXPECT_GT(second, 50);
}

TEST(FaultRules, FirstThatStrikesActsAndOthersCount) {
  FaultRules rules({{.action = FaultAction::drop, .nth = {{2, 2}}}, {.action = FaultAction::delay, .nth = {{2, 3}}}}, 1,
                   0, facts_of);
  EXPECT_FALSE(rules.decide(frame_of(4)));
  EXPECT_EQ(rules.decide(frame_of(4))->action, FaultAction::drop);
  EXPECT_EQ(rules.decide(frame_of(4))->action, FaultAction::delay);
  EXPECT_FALSE(rules.decide(frame_of(4)));
}

TEST(FaultRules, CorruptsOnlyWhatIsChecked) {
  FaultRules rules({{.action = FaultAction::corrupt}}, 1, 0, facts_of);
  std::bitset<96> seen;
  for (int i = 0; i < 5000; ++i) seen.set(rules.decide(frame_of(4, 0, 0, 4))->bit);
  for (std::size_t bit = 0; bit < seen.size(); ++bit) EXPECT_EQ(seen[bit], bit >= 3 * 8) << bit;
}

TEST(FaultRules, FlippedBitLeavesSharedBytesAlone) {
  const Frame original = frame_of(4, 0, 0, 4);
  std::vector<std::byte> before;
  original.append_to(before);
  for (std::uint32_t bit = 0; bit < original.size() * 8; ++bit) {
    Frame copy = original;
    flip_bit(copy, bit);
    std::vector<std::byte> after, now;
    copy.append_to(after);
    original.append_to(now);
    EXPECT_EQ(now, before);
    ASSERT_EQ(after.size(), before.size());
    int flipped = 0;
    for (std::size_t i = 0; i < after.size(); ++i) flipped += std::popcount(std::uint8_t(after[i] ^ before[i]));
    EXPECT_EQ(flipped, 1);
    EXPECT_NE(after[bit / 8], before[bit / 8]);
  }
}

// Frames leave end 0 one per microsecond, with PSNs from 1. Arrivals at end 1, with the time of the last bit.
class FaultyLink : public testing::Test {
 protected:
  struct Arrival {
    int number;
    Duration at;
    bool operator==(const Arrival&) const = default;
  };
  static constexpr Duration kLatency = 90_ns;

  void TearDown() override {
    link_.reset();
    sc_core::sc_get_curr_simcontext()->reset();
  }

  void run(const std::vector<FaultRule>& rules, int frames) {
    link_ = std::make_unique<Link>("link", LinkParams{.latency = kLatency},
                                   std::array{FaultRules(rules, 1, 0, facts_of), FaultRules()});
    link_->out(1).bind([this](Frame frame, Duration delay) {
      const auto at = now() + delay;
      // The receiver gets frames in the order of arrival.
      EXPECT_GE(at, arrivals_.empty() ? at : arrivals_.back().at);
      arrivals_.push_back({int(frame.header_span()[2]), at});
    });
    link_->out(0).bind([](Frame, Duration) {});
    for (int number = 1; number <= frames; ++number) {
      sc_core::sc_start(1, sc_core::SC_US);
      link_->send(0, frame_of(4, 0, static_cast<std::uint8_t>(number)));
    }
    sc_core::sc_start(1, sc_core::SC_MS);
  }
  std::vector<int> order() const {
    std::vector<int> numbers;
    for (const auto& arrival : arrivals_) numbers.push_back(arrival.number);
    return numbers;
  }
  static Duration sent(int number) { return 1_us * number; }
  Duration arrival(int number) const { return std::ranges::find(arrivals_, number, &Arrival::number)->at; }
  const FaultCounters& counters() { return link_->faults(0)->counters(); }

  std::unique_ptr<Link> link_;
  std::vector<Arrival> arrivals_;
};

TEST_F(FaultyLink, WithoutRules) {
  run({}, 3);
  EXPECT_EQ(link_->faults(0), nullptr);
  for (int number = 1; number <= 3; ++number) EXPECT_EQ(arrival(number), sent(number) + kLatency);
}

TEST_F(FaultyLink, Drop) {
  run({{.action = FaultAction::drop, .nth = {{2, 2}}}}, 3);
  EXPECT_THAT(order(), ElementsAre(1, 3));
  EXPECT_EQ(counters().dropped, 1u);
}

TEST_F(FaultyLink, DuplicateComesRightBehind) {
  run({{.action = FaultAction::duplicate, .nth = {{2, 2}}}}, 3);
  EXPECT_THAT(order(), ElementsAre(1, 2, 2, 3));
  EXPECT_EQ(arrivals_[1], arrivals_[2]);
  EXPECT_EQ(counters().duplicated, 1u);
}

TEST_F(FaultyLink, DuplicateComesLater) {
  run({{.action = FaultAction::duplicate, .nth = {{2, 2}}, .delay = 1500_ns}}, 4);
  EXPECT_THAT(order(), ElementsAre(1, 2, 3, 2, 4));
  EXPECT_EQ(arrivals_[1].at, sent(2) + kLatency);
  EXPECT_EQ(arrivals_[3].at, sent(2) + kLatency + 1500_ns);
}

TEST_F(FaultyLink, DelayIsExactAndOthersOvertake) {
  run({{.action = FaultAction::delay, .nth = {{2, 2}}, .delay = 2500_ns}}, 6);
  EXPECT_THAT(order(), ElementsAre(1, 3, 4, 2, 5, 6));
  EXPECT_EQ(arrival(2), sent(2) + kLatency + 2500_ns);
  for (const int number : {1, 3, 4, 5, 6}) EXPECT_EQ(arrival(number), sent(number) + kLatency);
  EXPECT_EQ(counters().delayed, 1u);
}

TEST_F(FaultyLink, DelayShorterThanTheLatency) {
  run({{.action = FaultAction::delay, .delay = 1_ps}}, 3);
  EXPECT_THAT(order(), ElementsAre(1, 2, 3));
  EXPECT_EQ(arrival(3), sent(3) + kLatency + 1_ps);
}

TEST_F(FaultyLink, ReorderedFrameLetsExactlySoManyPass) {
  run({{.action = FaultAction::reorder, .nth = {{2, 2}}, .behind = 3}}, 6);
  EXPECT_THAT(order(), ElementsAre(1, 3, 4, 5, 2, 6));
  EXPECT_EQ(arrival(2), sent(5) + kLatency);
  EXPECT_EQ(counters().reordered, 1u);
}

TEST_F(FaultyLink, TwoReorderedInARow) {
  run({{.action = FaultAction::reorder, .nth = {{2, 3}}}}, 5);
  // 4 precedes 3; then 3 is the frame that precedes 2.
  EXPECT_THAT(order(), ElementsAre(1, 4, 2, 3, 5));
}

TEST_F(FaultyLink, ReorderedFramesThatWaitForOneAnother) {
  run({{.action = FaultAction::reorder, .nth = {{1, 1}}, .behind = 2},
       {.action = FaultAction::reorder, .nth = {{2, 2}}, .behind = 1}},
      4);
  EXPECT_THAT(order(), ElementsAre(3, 2, 1, 4));
}

TEST_F(FaultyLink, LostFramesDoNotPass) {
  run({{.action = FaultAction::reorder, .nth = {{1, 1}}}, {.action = FaultAction::drop, .nth = {{2, 2}}}}, 3);
  EXPECT_THAT(order(), ElementsAre(3, 1));
}

TEST_F(FaultyLink, LastOfABurstIsHeldUntilTheLimit) {
  run({{.action = FaultAction::reorder, .nth = {{3, 3}}, .limit = 7_us}}, 3);
  EXPECT_THAT(order(), ElementsAre(1, 2, 3));
  EXPECT_EQ(arrival(3), sent(3) + kLatency + 7_us);
}

TEST_F(FaultyLink, DelayedFrameIsNoLaterOne) {
  run({{.action = FaultAction::delay, .nth = {{1, 1}}, .delay = 1500_ns},
       {.action = FaultAction::reorder, .nth = {{2, 2}}}},
      4);
  EXPECT_THAT(order(), ElementsAre(1, 3, 2, 4));
}

TEST_F(FaultyLink, CorruptedFrameArrivesInTime) {
  run({{.action = FaultAction::corrupt, .psn = {{2, 2}}}}, 3);
  EXPECT_EQ(arrivals_.size(), 3u);
  EXPECT_EQ(arrivals_[1].at, sent(2) + kLatency);
  EXPECT_EQ(counters().corrupted, 1u);
}

}  // namespace
}  // namespace rnicsim::fabric::faults_test
