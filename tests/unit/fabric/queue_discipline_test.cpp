// SPDX-License-Identifier: Apache-2.0
// Queue disciplines of a port: strict priority, DWRR and ETS.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "model/base/event_queue.h"
#include "model/base/policy_params.h"
#include "model/base/ports/priority_values.h"
#include "model/base/ports/queue_discipline.h"
#include "model/base/ports/transmit_port.h"
#include "sim/config/param_list.h"

namespace rnicsim::queue_discipline_test {
namespace {

using namespace rnicsim::literals;

struct Chosen {
  PolicyChoice<QueueDiscipline> scheduler{"strict"};
  void describe(ParamVisitor& visit) { scheduler.describe(visit, "scheduler", "which queue sends next"); }
};

std::unique_ptr<QueueDiscipline> make(const std::string& name, const std::string& key = "",
                                      const std::string& text = "") {
  Chosen chosen;
  sim::ParamList list(chosen);
  if (!key.empty()) list.find(name + "." + key)->assign(text);
  EXPECT_EQ(list.contradiction(), std::nullopt);
  return make_policy<QueueDiscipline>(name, chosen.scheduler.params(name));
}
std::optional<std::string> refused(const std::string& key, const std::string& text) {
  Chosen chosen;
  sim::ParamList(chosen).find(key)->assign(text);
  return sim::ParamList(chosen).contradiction();
}

// Share of the bytes that each queue sends when all `queues` always have frames of size `bytes`.
using Bytes = std::array<std::uint32_t, kPriorities>;
std::array<double, kPriorities> shares(QueueDiscipline& discipline, std::uint32_t queues, const Bytes& bytes,
                                       int frames = 20'000) {
  std::array<double, kPriorities> sent{};
  double sum = 0;
  for (int i = 0; i < frames; ++i) {
    const auto queue = discipline.choose({queues, bytes});
    EXPECT_NE(queues >> queue & 1, 0u);
    discipline.left(false);
    sent[queue] += bytes[queue];
    sum += bytes[queue];
  }
  for (auto& each : sent) each /= sum;
  return sent;
}

constexpr Bytes kAlike{1'500, 1'500, 1'500, 1'500, 1'500, 1'500, 1'500, 1'500};
constexpr Bytes kMixed{9'000, 64, 4'200, 1'500, 64, 300, 1'500, 60};

TEST(Strict, NeedsNoDiscipline) { EXPECT_EQ(make("strict"), nullptr); }

TEST(Dwrr, SharesByWeightInBytes) {
  for (const auto& bytes : {kAlike, kMixed}) {
    const auto dwrr = make("dwrr", "weights", "0:10 3:70 4:20");
    const auto sent = shares(*dwrr, 0b11001, bytes);
    EXPECT_NEAR(sent[0], 0.10, 0.005);
    EXPECT_NEAR(sent[3], 0.70, 0.005);
    EXPECT_NEAR(sent[4], 0.20, 0.005);
  }
}

TEST(Dwrr, AWeightIsOneUnlessTold) {
  const auto sent = shares(*make("dwrr", "weights", "5:2"), 0b100110, kMixed);
  EXPECT_NEAR(sent[1], 0.25, 0.005);
  EXPECT_NEAR(sent[2], 0.25, 0.005);
  EXPECT_NEAR(sent[5], 0.50, 0.005);
}

TEST(Dwrr, StrictPrioritiesGoFirst) {
  const auto dwrr = make("dwrr", "strict", "192");  // priorities 6 and 7
  EXPECT_EQ(dwrr->choose({0b11000001, kAlike}), 7);
  dwrr->left(false);
  EXPECT_EQ(dwrr->choose({0b01000001, kAlike}), 6);
  dwrr->left(false);
  EXPECT_EQ(dwrr->choose({0b00000001, kAlike}), 0);
}

TEST(Dwrr, AnEmptyQueueSavesNothing) {
  const auto dwrr = make("dwrr", "weights", "0:100 1:1");
  // Queue 0 sends single frames and is empty behind each: it must not save credit from its large weight.
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(dwrr->choose({0b01, kAlike}), 0);
    dwrr->left(true);
  }
  const auto sent = shares(*dwrr, 0b11, kAlike);
  EXPECT_NEAR(sent[0], 100.0 / 101, 0.01);
}

// A queue that is paused repeatedly behind its first frame saves no credit.
TEST(Dwrr, APausedQueueSavesNothing) {
  const auto dwrr = make("dwrr", "weights", "0:1 3:15");
  int urgent = 0;
  for (int i = 0; i < 3'000; ++i) {
    const bool paused = urgent > 0 && i % 3 != 0;
    const auto queue = dwrr->choose({paused ? 0b0001u : 0b1001u, kAlike});
    urgent += queue == 3;
    dwrr->left(false);
  }
  // Without the pause the queue sends no more than its weight.
  const auto sent = shares(*dwrr, 0b1001, kAlike, 100);
  EXPECT_LT(sent[3], 0.97);
}

TEST(Disciplines, BeginAnew) {
  for (const std::string name : {"dwrr", "ets"}) {
    const auto key = name == "dwrr" ? "weights" : "bandwidth";
    const auto used = make(name, key, "0:20 2:80"), fresh = make(name, key, "0:20 2:80");
    shares(*used, 0b101, kMixed, 57);
    used->reset();
    for (int i = 0; i < 50; ++i) {
      ASSERT_EQ(used->choose({0b101, kMixed}), fresh->choose({0b101, kMixed})) << name;
      used->left(false);
      fresh->left(false);
    }
  }
}

TEST(Ets, SharesByPercentOfWhatTheOthersLeave) {
  for (const auto& bytes : {kAlike, kMixed}) {
    const auto ets = make("ets", "bandwidth", "0:30 3:70");
    const auto sent = shares(*ets, 0b1001, bytes);
    EXPECT_NEAR(sent[0], 0.30, 0.005);
    EXPECT_NEAR(sent[3], 0.70, 0.005);
  }
  const auto ets = make("ets", "bandwidth", "0:30 3:70");
  EXPECT_EQ(ets->choose({0b1000'1001, kAlike}), 7);
}

TEST(Ets, AQueueThatWasIdleGetsNoMoreThanItsShare) {
  const auto ets = make("ets", "bandwidth", "0:50 1:50");
  shares(*ets, 0b01, kAlike, 1'000);
  const auto sent = shares(*ets, 0b11, kAlike, 100);
  EXPECT_NEAR(sent[1], 0.5, 0.02);
}

// choose() may be called any number of times: only the last result before left() counts.
TEST(Disciplines, AnswersThatAreNotTakenChangeNothing) {
  for (const std::string name : {"dwrr", "ets"}) {
    const auto key = name == "dwrr" ? "weights" : "bandwidth";
    const auto one = make(name, key, "0:20 2:80"), other = make(name, key, "0:20 2:80");
    std::mt19937 random(1);
    for (int i = 0; i < 2'000; ++i) {
      const std::uint32_t queues = 1 + random() % 255;
      for (auto asked = random() % 4; asked > 0; --asked) other->choose({1 + std::uint32_t(random()) % 255, kMixed});
      ASSERT_EQ(one->choose({queues, kMixed}), other->choose({queues, kMixed})) << name << i;
      const bool empty = random() % 3 == 0;
      one->left(empty);
      other->left(empty);
    }
  }
}

TEST(Disciplines, RefuseWhatIsNoListOfPriorities) {
  for (const auto* text : {"8:1", "1", "1:", ":1", "1:0", "1:101", "1:1 1:2", "1:1,2:3", "1:-1", "1:1x", "x"}) {
    EXPECT_EQ(parse_priority_values(text, 100), std::nullopt) << text;
    EXPECT_NE(refused("dwrr.weights", text), std::nullopt) << text;
    EXPECT_NE(refused("ets.bandwidth", text), std::nullopt) << text;
  }
  EXPECT_NE(refused("ets.bandwidth", "0:30 3:69"), std::nullopt);
  EXPECT_EQ(refused("ets.bandwidth", "0:30  3:70 "), std::nullopt);
}

// A port with frames of two priorities that wait from the start: they leave by their shares; a control frame goes
// first, and a paused priority leaves its share to the other.
TEST(Disciplines, DecideWhatLeavesAPort) {
  sc_core::sc_get_curr_simcontext()->reset();
  std::vector<std::uint8_t> left;
  std::unique_ptr<TransmitPort> port;
  port = std::make_unique<TransmitPort>(
      [&] {
        TransmitPort::Departure departure;
        while (port->pop_due(departure)) left.push_back(departure.priority);
      },
      TransmitPort::kUnlimited, 0, make("dwrr", "weights", "1:1 3:3"));
  const auto frame = [] { return Frame::of(Payload(std::size_t{2'048}), {}, {}, 0); };
  for (int i = 0; i < 40; ++i)
    for (const std::uint8_t priority : {1, 3}) port->send(frame(), now(), 10_ns, priority);
  port->send(frame(), now(), 10_ns, TransmitPort::kControl);
  sc_core::sc_start(405, sc_core::SC_NS);
  ASSERT_EQ(left.size(), 40u);
  EXPECT_EQ(left[1], TransmitPort::kControl);  // behind the frame whose transmission had begun
  const auto low = std::count(left.begin(), left.begin() + 40, 1);
  EXPECT_NEAR(static_cast<double>(low), 39 / 4.0, 1);
  port->pause(3, now() + 1_us);
  const auto before = left.size();
  sc_core::sc_start(100, sc_core::SC_NS);
  // The frame whose transmission has begun still leaves.
  EXPECT_LE(std::count(left.begin() + static_cast<std::ptrdiff_t>(before), left.end(), 3), 1);
  sc_core::sc_start(5, sc_core::SC_US);
  EXPECT_EQ(left.size(), 81u);
}

}  // namespace
}  // namespace rnicsim::queue_discipline_test
