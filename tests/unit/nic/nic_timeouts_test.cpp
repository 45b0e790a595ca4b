// SPDX-License-Identifier: Apache-2.0
// Unanswered packets are retransmitted after the QP's timeout, and earlier if the NIC adapts (nic.adaptive_timeout).
#include <set>
#include <vector>

#include "model/nic/engine/adaptive_retransmission.h"
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test {
namespace {

using abi::CqeSyndrome;
using abi::SendOpcode;

constexpr std::uint8_t kLong = 14;     // 67 ms
constexpr Duration kRoundTrip = 3_us;  // more than one round trip

class Timeouts : public Pair {
 protected:
  void SetUp() override {}
  // Duration of a WRITE whose first `lost` packets are lost.
  Duration time(Duration adaptive, std::uint8_t timeout, int lost, std::uint8_t retries = 3) {
    NicParams params;
    params.adaptive_timeout = adaptive;
    build(params);
    connect(3, [&](abi::Qpc& c) {
      c.timeout = timeout;
      c.retry_count = retries;
    });
    drop() = [lost](const Frame&) mutable { return lost-- > 0; };
    const auto begin = now();
    a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b()});
    EXPECT_EQ(a().wait_status(kSendCqn, 400_ms), CqeSyndrome::success);
    return now() - begin;
  }
  EngineCounters counters() { return a().nic.counters().engine; }
  static void expect_about(Duration is, Duration wanted) {
    EXPECT_GE(is.ps, wanted.ps);
    EXPECT_LT(is.ps, (wanted + kRoundTrip).ps + wanted.ps / 64);  // timers may run late by 1/64
  }
};

TEST_F(Timeouts, ByTheQueuePairsOwn) {
  expect_about(time({}, kLong, 1), 67'109_us);
  EXPECT_EQ(counters().local_ack_timeout_err, 1u);
  EXPECT_EQ(counters().roce_adp_retrans, 0u);
}

// Each timeout is four times as long as the previous one.
TEST_F(Timeouts, EarlierWhereTheNicAdapts) {
  expect_about(time(16_us, kLong, 0), 0_ns);
  Duration after;
  for (int lost = 1; lost <= 4; ++lost) {
    after += 16_us * (1 << 2 * (lost - 1));
    expect_about(time(16_us, kLong, lost), after);
    EXPECT_EQ(counters().roce_adp_retrans, static_cast<Counter>(lost));
    EXPECT_EQ(counters().local_ack_timeout_err, 0u);
  }
}

TEST_F(Timeouts, AnEarlyOneIsNoRetry) { expect_about(time(16_us, kLong, 3, 0), 16_us + 64_us + 256_us); }

TEST_F(Timeouts, AShorterOneOfTheQueuePairComesFirst) {
  constexpr std::uint8_t kShort = 1;  // 8.192 us
  expect_about(time(16_us, kShort, 1), 8'192_ns);
  EXPECT_EQ(counters().local_ack_timeout_err, 1u);
  EXPECT_EQ(counters().roce_adp_retrans, 0u);
}

// --- With the parameters of a profile.
class Profile : public Timeouts {
 protected:
  Profile() {
    adaptive.time_base = 4_us;
    adaptive.timeout_init_low_bound = 2;
    adaptive.timeout_ranges = "2:2:2 5:2:1";
  }
  // Timeouts of a queue pair that gets no answer, in units of time_base.
  std::vector<std::int64_t> of_nothing_heard(std::size_t count, std::uint64_t draw = 0) const {
    const AdaptiveTimeouts timeouts(adaptive);
    AdaptiveTimer timer{.own = 1_s};
    timeouts.begin(timer, draw);
    std::vector<std::int64_t> all;
    for (; all.size() < count; timeouts.expired(timer))
      all.push_back(timeouts.timeout(timer).ps / adaptive.time_base.ps);
    return all;
  }

  AdaptiveRetransmissionParams adaptive;
};

// The first timeout is used once, each other one as often as its range says; the highest stays.
TEST_F(Profile, RangesComeInTurn) {
  EXPECT_EQ(of_nothing_heard(8), (std::vector<std::int64_t>{4, 8, 8, 32, 64, 64, 64, 64}));
  adaptive.timeout_ranges = "4:1:3";
  EXPECT_EQ(of_nothing_heard(4), (std::vector<std::int64_t>{4, 16, 16, 16}));
}

TEST_F(Profile, AFirstOneInNoRangeLeadsToTheStart) {
  adaptive.timeout_init_low_bound = 4;
  EXPECT_EQ(of_nothing_heard(4), (std::vector<std::int64_t>{16, 4, 4, 8}));
  adaptive.start_range_index = 1;
  EXPECT_EQ(of_nothing_heard(3), (std::vector<std::int64_t>{16, 32, 64}));
  EXPECT_EQ(of_nothing_heard(2, 1), (std::vector<std::int64_t>{32, 64}));
}

TEST_F(Profile, AnAnswerMakesItShorter) {
  const auto behind = [&](const char* mode, int expirations, int answers) {
    adaptive.dec_mode = mode;
    adaptive.timeout_ranges = "2:4:1 7:4:1";
    const AdaptiveTimeouts timeouts(adaptive);
    AdaptiveTimer timer{.own = 1_s};
    timeouts.begin(timer, 0);
    for (int i = 0; i < expirations; ++i) timeouts.expired(timer);
    for (int i = 0; i < answers; ++i) timeouts.progressed(timer);
    return timer.exponent;
  };
  EXPECT_EQ(behind("low_bound", 3, 0), 5);
  EXPECT_EQ(behind("low_bound", 3, 1), 2);
  EXPECT_EQ(behind("half", 3, 1), 4);
  EXPECT_EQ(behind("quarter", 3, 1), 3);
  EXPECT_EQ(behind("quarter", 3, 2), 2);
  EXPECT_EQ(behind("half", 4, 1), 5);  // from the lowest of a range to the previous range
  EXPECT_EQ(behind("low_bound", 6, 1), 7);
  EXPECT_EQ(behind("low_bound", 6, 2), 2);
}

// Waiting as long as the queue pair's own timeout costs one retry, and the last retry ends the QP.
TEST_F(Profile, RetriesCountByTheQueuePairsOwnTimeout) {
  NicParams params;
  params.adaptive_retransmission = adaptive;
  build(params);
  connect(3, [](abi::Qpc& c) {
    c.timeout = 8;  // 1.049 ms
    c.retry_count = 2;
  });
  drop() = [](const Frame&) { return true; };
  const auto begin = now();
  a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b()});
  EXPECT_EQ(a().wait_status(kSendCqn, 400_ms), CqeSyndrome::transport_retry_exceeded);
  EXPECT_GT(now() - begin, 3 * 1049_us);
  EXPECT_LT(now() - begin, 3 * 1049_us + 3 * 256_us);
  EXPECT_EQ(counters().local_ack_timeout_err, 3u);
  EXPECT_GT(counters().roce_adp_retrans, 9u);
}

// Each queue pair draws its first exponent; the run's seed changes the draws.
TEST_F(Profile, TheFirstIsDrawn) {
  adaptive.timeout_init_range_size = 8;
  std::set<std::int64_t> times;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    NicParams params;
    params.adaptive_retransmission = adaptive;
    Duration once{};
    for (int i = 0; i < 2; ++i) {
      build(params);
      a().nic.seed(seed);
      connect(3, [](abi::Qpc& c) { c.timeout = kLong; });
      drop() = [lost = 1](const Frame&) mutable { return lost-- > 0; };
      const auto begin = now();
      a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b()});
      EXPECT_EQ(a().wait_status(kSendCqn, 400_ms), CqeSyndrome::success);
      if (i == 1) {
        EXPECT_EQ(now() - begin, once);
      }
      once = now() - begin;
    }
    times.insert(once.ps / 1'000'000 / 4);
  }
  EXPECT_GT(times.size(), 3u);
  EXPECT_GE(*times.begin(), 4);
}

}  // namespace
}  // namespace rnicsim::nic::test
