// SPDX-License-Identifier: Apache-2.0
// The gate in front of one queue pair's packets, and the telemetry in its acknowledgements, tested alone.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model/nic/engine/congestion_gate.h"
#include "model/nic/engine/telemetry_returns.h"

namespace rnicsim::nic::congestion_gate_test {
namespace {

using namespace rnicsim::literals;

// --- A control whose window a test sets.
struct Windowed : roce::CongestionControl {
  explicit Windowed(std::uint64_t& window) : window(window) {}
  roce::Allowance allowance(Duration) override { return {.window = window}; }
  bool wants_acknowledgements() const override { return true; }
  std::uint64_t& window;
};

struct Listening : roce::CongestionControl {
  explicit Listening(std::vector<std::size_t>& hops) : hops(hops) {}
  roce::Allowance allowance(Duration) override { return {}; }
  bool wants_acknowledgements() const override { return true; }
  bool wants_telemetry() const override { return true; }
  void acknowledged(const roce::AckFacts& facts, Duration) override { hops.push_back(facts.hops.size()); }
  std::vector<std::size_t>& hops;
};

class Gate : public testing::Test {
 protected:
  bool send(std::uint32_t psn) { return gate.request_sent(roce::Psn(psn + 1), 1000, false, 1_us); }
  bool may_send() { return gate.not_before(1_us, &gate.requests()) != CongestionGate::kNever; }

  std::uint64_t window = 5000;
  CongestionGate gate{std::make_unique<Windowed>(window), 4};
};

TEST_F(Gate, AsksEveryFewPacketsAndAtTheEndOfTheWindow) {
  std::vector<bool> asked;
  for (std::uint32_t psn = 0; psn < 5; ++psn) {
    EXPECT_TRUE(may_send());
    asked.push_back(send(psn));
  }
  EXPECT_EQ(asked, (std::vector<bool>{false, false, false, true, true}));
  EXPECT_FALSE(may_send());
  gate.acknowledged(roce::Psn(4), false, 2_us);
  EXPECT_TRUE(may_send());
}

// The window shrinks while no unacknowledged packet requests an acknowledgement: without one more packet the queue pair
// would wait for its timeout.
TEST_F(Gate, SendsOneMorePacketWhereNoAcknowledgementWouldCome) {
  for (std::uint32_t psn = 0; psn < 5; ++psn) send(psn);
  gate.acknowledged(roce::Psn(4), false, 2_us);
  for (std::uint32_t psn = 5; psn < 8; ++psn) EXPECT_FALSE(send(psn));
  window = 2500;
  gate.acknowledged(roce::Psn(5), false, 3_us);
  EXPECT_TRUE(may_send());
  EXPECT_TRUE(send(8));
  EXPECT_FALSE(may_send());
  gate.acknowledged(roce::Psn(9), false, 4_us);
  EXPECT_TRUE(may_send());
}

TEST_F(Gate, TellsAViewOnce) {
  EXPECT_EQ(gate.new_view(1_us), (ControlView{{}, 5000}));
  EXPECT_EQ(gate.new_view(2_us), std::nullopt);
  window = 2500;
  EXPECT_EQ(gate.new_view(2_us), (ControlView{{}, 2500}));
  EXPECT_EQ(gate.new_view(2_us), std::nullopt);
}

TEST_F(Gate, TellsOfTelemetryOnce) {
  std::vector<std::size_t> hops;
  CongestionGate listening(std::make_unique<Listening>(hops), 1);
  EXPECT_EQ(listening.carried(), Telemetry());
  EXPECT_EQ(gate.carried(), std::nullopt);
  for (std::uint32_t psn = 0; psn < 4; ++psn) {
    listening.request_sent(roce::Psn(psn + 1), 1000, false, 1_us);
    Telemetry block;
    block.add({.rate = {100'000'000'000}, .at = Duration{1'000'000} * psn, .sent = 1000 * psn});
    if (psn != 2) listening.take_telemetry(block, 1_us * (psn + 1));
    listening.acknowledged(roce::Psn(psn + 1), false, 1_us * (psn + 1));
  }
  EXPECT_EQ(hops, (std::vector<std::size_t>{0, 1, 0, 1}));
}

TEST_F(Gate, AfterARewindTheWindowIsEmpty) {
  for (std::uint32_t psn = 0; psn < 5; ++psn) send(psn);
  EXPECT_FALSE(may_send());
  gate.rewound();
  EXPECT_TRUE(may_send());
}

// --- Values that acknowledgements return.
class Returns : public testing::Test {
 protected:
  static roce::Headers answer(std::uint32_t psn, std::uint8_t syndrome = 0x1f) {
    roce::Headers headers;
    headers.bth.psn = roce::Psn(psn);
    headers.aeth = roce::Aeth{.syndrome = syndrome, .msn = 0};
    return headers;
  }
  void ask(std::uint32_t psn, Duration at) { returns.came(Telemetry::delay_request(), roce::Psn(psn), at); }
  std::optional<Duration> told(const roce::Headers& headers, Duration now) {
    const auto block = returns.take(headers, now);
    return block ? block->delay() : std::nullopt;
  }

  TelemetryReturns returns;
};

TEST_F(Returns, TheDelayIsOfTheNewestThatIsAcknowledged) {
  for (std::uint32_t psn = 0; psn < 4; ++psn) ask(psn, 1_us * psn);
  EXPECT_EQ(told(answer(2), 10_us), 8_us);
  EXPECT_EQ(told(answer(2), 10_us), std::nullopt);
  EXPECT_FALSE(returns.empty());
  EXPECT_EQ(told(answer(9), 10_us), 7_us);
  EXPECT_TRUE(returns.empty());
}

TEST_F(Returns, ANakAndAnAnswerToAReadBringNone) {
  ask(0, 1_us);
  EXPECT_EQ(told(answer(0, 0x60), 2_us), std::nullopt);
  EXPECT_EQ(told(answer(0, 0x20), 2_us), std::nullopt);
  roce::Headers read = answer(0);
  read.aeth.reset();
  EXPECT_EQ(told(read, 2_us), std::nullopt);
  EXPECT_EQ(told(answer(0), 3_us), 2_us);
}

// A packet that was dropped behind a gap arrives again: the later arrival counts. Packets that never arrive again
// occupy no entry.
TEST_F(Returns, APacketThatComesTwiceCountsFromItsLastArrival) {
  ask(1, 1_us);
  ask(0, 2_us);
  ask(1, 3_us);
  EXPECT_EQ(told(answer(1), 5_us), 2_us);
  for (std::uint32_t i = 0; i < 100'000; ++i) ask(7, 1_us * i);
  EXPECT_EQ(told(answer(7), 100'000_us), 1_us);
}

}  // namespace
}  // namespace rnicsim::nic::congestion_gate_test
