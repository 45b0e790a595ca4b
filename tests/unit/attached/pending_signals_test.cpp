// SPDX-License-Identifier: Apache-2.0
// Pending signals: which merge, which queue, and the order of delivery.
#include <gtest/gtest.h>
#include <signal.h>

#include "sim/attached/processes/pending_signals.h"

namespace rnicsim::sim {
namespace {

constexpr SignalSet kAll = ~SignalSet{0};

abi::SignalRecord signal(std::uint32_t number, std::uint64_t value = 0) { return {.number = number, .value = value}; }

std::uint64_t value_of(std::optional<abi::SignalRecord> taken) { return taken ? taken->value : ~std::uint64_t{0}; }

TEST(PendingSignals, AStandardOneWaitsOnce) {
  PendingSignals signals;
  EXPECT_TRUE(signals.push(signal(SIGUSR1, 1)));
  EXPECT_TRUE(signals.push(signal(SIGUSR1, 2)));
  EXPECT_EQ(value_of(signals.take(kAll)), 1u);
  EXPECT_TRUE(signals.empty());
}

TEST(PendingSignals, RealTimeOnesQueueInTheirOrder) {
  PendingSignals signals;
  for (std::uint64_t value = 1; value <= 3; ++value) EXPECT_TRUE(signals.push(signal(34, value)));
  for (std::uint64_t value = 1; value <= 3; ++value) EXPECT_EQ(value_of(signals.take(kAll)), value);
  EXPECT_FALSE(signals.take(kAll));
}

TEST(PendingSignals, TheLowestNumberOfTheSetIsTaken) {
  PendingSignals signals;
  for (const std::uint32_t number : {40u, 34u, std::uint32_t(SIGTERM), std::uint32_t(SIGUSR1)})
    signals.push(signal(number, number));
  EXPECT_EQ(signals.set(), set_of(40) | set_of(34) | set_of(SIGTERM) | set_of(SIGUSR1));
  EXPECT_EQ(value_of(signals.take(set_of(40) | set_of(SIGTERM))), std::uint64_t(SIGTERM));
  EXPECT_FALSE(signals.take(set_of(SIGTERM)));
  EXPECT_EQ(value_of(signals.take(kAll)), std::uint64_t(SIGUSR1));
  EXPECT_EQ(value_of(signals.take(set_of(64) | set_of(40))), 40u);
}

TEST(PendingSignals, TheQueueHasAnEnd) {
  PendingSignals signals;
  std::size_t pushed = 0;
  while (signals.push(signal(64))) ASSERT_LT(++pushed, 100'000u);
  EXPECT_GT(pushed, 100u);
  EXPECT_TRUE(signals.push(signal(SIGTERM)));
  EXPECT_TRUE(signals.take(set_of(64)));
  EXPECT_FALSE(signals.push(signal(64)));  // SIGTERM has taken the last place
  EXPECT_TRUE(signals.take(set_of(64)));
  EXPECT_TRUE(signals.push(signal(64)));
}

}  // namespace
}  // namespace rnicsim::sim
