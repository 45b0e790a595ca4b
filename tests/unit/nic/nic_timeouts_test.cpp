// What is not answered is sent again: by the QP's timeout, and before that where the NIC adapts (nic.adaptive_timeout).
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test {
namespace {

using abi::CqeSyndrome;
using abi::SendOpcode;

constexpr std::uint8_t kLong = 14;       // 67 ms
constexpr Duration kRoundTrip = 3_us;    // more than one takes

class Timeouts : public Pair {
 protected:
  void SetUp() override {}
  // How long a WRITE takes whose first `lost` packets are lost.
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
    EXPECT_LT(is.ps, (wanted + kRoundTrip).ps + wanted.ps / 64);  // timers run late by so much
  }
};

TEST_F(Timeouts, ByTheQueuePairsOwn) {
  expect_about(time({}, kLong, 1), 67'109_us);
  EXPECT_EQ(counters().local_ack_timeout_err, 1u);
  EXPECT_EQ(counters().roce_adp_retrans, 0u);
}

// Each four times as long as the one before.
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

TEST_F(Timeouts, AnEarlyOneIsNoRetry) {
  expect_about(time(16_us, kLong, 3, 0), 16_us + 64_us + 256_us);
}

TEST_F(Timeouts, AShorterOneOfTheQueuePairComesFirst) {
  constexpr std::uint8_t kShort = 1;     // 8.192 us
  expect_about(time(16_us, kShort, 1), 8'192_ns);
  EXPECT_EQ(counters().local_ack_timeout_err, 1u);
  EXPECT_EQ(counters().roce_adp_retrans, 0u);
}

}  // namespace
}  // namespace rnicsim::nic::test
