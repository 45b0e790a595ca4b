// SPDX-License-Identifier: Apache-2.0
// The send-WQE cache alone: order of requests that wait for miss slots, and order of completions.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "model/nic/queues/send_wqe_cache.h"
#include "tests/timing/dma_bench.h"

namespace rnicsim::nic::test::send_wqe_cache {
namespace {

using namespace rnicsim::literals;

constexpr Qpn kQp{7};
constexpr Qpn kOther{8};

// Log of the cache's calls: "s3": WQE 3 is available for sending, "c3": WQE 3 is available for its completion.
class SendWqes {
 public:
  explicit SendWqes(std::uint32_t miss_slots, std::uint32_t units = 1)
      : bench_(DmaParams{}), cache_(params(miss_slots), units, kBlock, bench_.dma()) {
    cache_.at_hand.bind([this](Tag tag) { say('s', static_cast<std::uint32_t>(tag)); });
    cache_.cqe.bind([this](CqeWrite&& write) {
      say('c', write.cqe.wqe_counter);
      if (write.behind_payload) said_ += '!';
    });
  }

  void hold(std::uint16_t index, Qpn qpn = kQp) { cache_.hold({qpn, index, 1}); }
  void need(std::uint16_t index, Qpn qpn = kQp) {
    cache_.need({Tag{index}, qpn, index, 1, DmaBench::kProgram, address(index)});
  }
  void retire(std::uint16_t index, Qpn qpn = kQp) {
    CqeWrite write{.cqn = {1}, .cqe = {}, .solicited = false, .behind_payload = true};
    write.cqe.wqe_counter = index;
    cache_.retire({qpn, index, 1, DmaBench::kProgram, address(index), std::move(write)});
  }
  void forget(Qpn qpn) { cache_.forget_qp(qpn); }
  void reset() { cache_.reset(); }
  // Runs `begin`, waits for the end of all requests, and returns the log.
  std::string after(std::function<void()> begin) {
    bench_.at({}, std::move(begin));
    bench_.run();
    return said_;
  }
  const std::string& said() const { return said_; }
  std::size_t reads() const { return bench_.issued.size(); }
  const SendWqeCacheCounters& counters() const { return cache_.counters(); }

  std::function<void()> sent = [] {};

 private:
  static constexpr std::uint32_t kBlock = 64;
  static SendWqeCacheParams params(std::uint32_t miss_slots) {
    return {.entries = 64, .ways = 4, .miss_slots = miss_slots};
  }
  static std::uint64_t address(std::uint16_t index) { return std::uint64_t{index} * kBlock; }
  void say(char what, std::uint32_t index) {
    said_ += (said_.empty() ? "" : " ") + (what + std::to_string(index));
    if (what == 's') std::exchange(sent, [] {})();
  }

  DmaBench bench_;
  SendWqeCache cache_;
  std::string said_;
};

TEST(SendWqeCache, AHitPassesAMissThatHasASlot) {
  SendWqes wqes(2);
  EXPECT_EQ(wqes.after([&] {
    wqes.hold(1);
    wqes.need(0);
    wqes.need(1);
    wqes.retire(1);
    EXPECT_EQ(wqes.said(), "s1 c1!");
  }),
            "s1 c1! s0");
  EXPECT_EQ(wqes.counters().slot_waits, 0u);
  EXPECT_EQ(wqes.counters().hits, 2u);
  EXPECT_EQ(wqes.counters().misses, 1u);
}

// With a slot it continues, and so do the WQEs behind it: they pass it while it is read.
TEST(SendWqeCache, AMissWithoutASlotHoldsUpAllBehindIt) {
  SendWqes wqes(1);
  EXPECT_EQ(wqes.after([&] {
    wqes.hold(2);
    wqes.hold(3);
    wqes.need(0);
    wqes.need(1);
    wqes.need(2);
    wqes.retire(3, kQp);
    wqes.retire(4, kOther);
    EXPECT_EQ(wqes.said(), "");
    EXPECT_EQ(wqes.reads(), 1u);
  }),
            "s0 s2 c3 s1 c4");
  EXPECT_EQ(wqes.counters().slot_waits, 4u);
  EXPECT_EQ(wqes.counters().lookups, 5u);
  EXPECT_EQ(wqes.counters().hits, 2u);
  EXPECT_EQ(wqes.counters().misses, 3u);
}

// kQp uses one unit, kOther the other.
TEST(SendWqeCache, WhatOneUnitWaitsForHoldsUpNoOther) {
  SendWqes wqes(1, 2);
  EXPECT_EQ(wqes.after([&] {
    wqes.hold(2);
    wqes.hold(3, kOther);
    wqes.need(0);
    wqes.need(1);
    wqes.need(2);
    wqes.retire(3, kOther);
    wqes.retire(4, kOther);
    EXPECT_EQ(wqes.said(), "c3!");
    EXPECT_EQ(wqes.reads(), 2u);
  }),
            "c3! s0 s2 c4 s1");
  EXPECT_EQ(wqes.counters().slot_waits, 2u);
  EXPECT_EQ(wqes.counters().misses, 3u);
}

// As many WQEs are read at a time as there are slots; then those behind them.
TEST(SendWqeCache, SlotsBoundWhatIsReadAtATime) {
  for (const std::uint32_t slots : {1u, 2u, 5u, 12u}) {
    SendWqes wqes(slots);
    EXPECT_EQ(wqes.after([&] {
      for (std::uint16_t i = 0; i < 12; ++i) wqes.need(i);
      EXPECT_EQ(wqes.reads(), slots);
    }),
              "s0 s1 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11");
    EXPECT_EQ(wqes.reads(), 12u);
    EXPECT_EQ(wqes.counters().slot_waits, 12u - slots);
  }
}

// A QP requests its next WQE from within the notification: the request must not precede waiting requests.
TEST(SendWqeCache, WhoAsksWhenItIsAnsweredComesLast) {
  SendWqes wqes(1);
  EXPECT_EQ(wqes.after([&] {
    wqes.hold(9);
    wqes.sent = [&] { wqes.need(9); };
    for (const std::uint16_t i : {0, 1, 2}) wqes.need(i);
  }),
            "s0 s1 s9 s2");
}

TEST(SendWqeCache, WhatWasReadToBeSentIsHereWhenItsAnswerComes) {
  SendWqes wqes(1);
  EXPECT_EQ(wqes.after([&] {
    wqes.sent = [&] { wqes.retire(0); };
    wqes.need(0);
  }),
            "s0 c0!");
  EXPECT_EQ(wqes.reads(), 1u);
}

TEST(SendWqeCache, CompletionsOfAQpStayInOrder) {
  SendWqes wqes(2);
  EXPECT_EQ(wqes.after([&] {
    for (const std::uint16_t i : {1, 5}) wqes.hold(i);
    wqes.hold(5, kOther);
    for (const std::uint16_t i : {0, 1}) wqes.retire(i);
    wqes.retire(5, kOther);
    EXPECT_EQ(wqes.said(), "c5!");
  }),
            "c5! c0 c1");
}

TEST(SendWqeCache, AQpThatIsGoneIsNotCompletedAndTakesNoTurn) {
  SendWqes wqes(1);
  EXPECT_EQ(wqes.after([&] {
    wqes.hold(3, kOther);
    for (const std::uint16_t i : {0, 1, 2}) wqes.retire(i);
    wqes.retire(3, kOther);
    wqes.forget(kQp);
  }),
            "c3");
  EXPECT_EQ(wqes.reads(), 1u);
}

TEST(SendWqeCache, ResetForgetsWhoWaits) {
  SendWqes wqes(1);
  EXPECT_EQ(wqes.after([&] {
    for (const std::uint16_t i : {0, 1}) wqes.need(i);
    wqes.retire(2);
    wqes.reset();
    wqes.hold(5);
    wqes.need(4);
    EXPECT_EQ(wqes.reads(), 2u);
    wqes.retire(5);
    EXPECT_EQ(wqes.said(), "c5!");
  }),
            "c5! s4");
}

}  // namespace
}  // namespace rnicsim::nic::test::send_wqe_cache
