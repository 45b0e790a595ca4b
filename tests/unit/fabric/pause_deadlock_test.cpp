// SPDX-License-Identifier: Apache-2.0
// Deadlocks of flow control between switches: a ring of pauses is found; plain waiting is no deadlock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/base/event_queue.h"
#include "model/fabric/link.h"
#include "model/fabric/pause_deadlock.h"
#include "model/fabric/switch.h"

namespace rnicsim::fabric::pause_deadlock_test {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kBytes = 1000;
constexpr std::uint32_t kBoxes = 3;
// Ports of each switch in the ring: to the previous switch, to the next switch, to the host.
constexpr std::uint32_t kBefore = 0, kNext = 1, kHost = 2;

// A ring of three switches with one host each. A frame for host i leaves every other switch by kNext.
class Ring : public testing::Test {
 protected:
  Ring() {
    Stations table;
    for (std::uint32_t i = 0; i < kBoxes; ++i) table.add({2, 0, 0, 0, 0, std::uint8_t(i)}, {i, kHost});
    const auto stations = std::make_shared<const Stations>(table);
    SwitchParams params;
    params.pfc.priorities = 1;
    params.pfc.xoff = {20 * kBytes};
    params.pfc.xon = {10 * kBytes};
    params.pfc.headroom = 1_MiB;
    for (std::uint32_t i = 0; i < kBoxes; ++i)
      boxes_.push_back(std::make_unique<Switch>(("box" + std::to_string(i)).c_str(), params,
                                                SwitchWiring{.number = i,
                                                             .lines = std::vector<LineTiming>(3),
                                                             .stations = stations,
                                                             .way_to = {0, 0, 0},
                                                             .ways = {{kNext}},
                                                             .flooded = {}}));
    for (std::uint32_t i = 0; i < kBoxes; ++i) {
      auto& next = *boxes_[(i + 1) % kBoxes];
      auto& box = *boxes_[i];
      box.out(kNext).bind([&next](Frame&& frame) { next.receive(kBefore, std::move(frame), 100_ns); });
      next.out(kBefore).bind([&box](Frame&& frame) { box.receive(kNext, std::move(frame), 100_ns); });
      box.out(kHost).bind([this](Frame&& frame) { delivered_ += !is_mac_control(frame); });
      deadlock_.add(box);
      deadlock_.connect({i, kNext}, {(i + 1) % kBoxes, kBefore});
    }
  }
  // 100 frames from the host of switch `from` to the host `ahead` switches further.
  void send(std::uint32_t from, std::uint32_t ahead, int frames = 100) {
    std::array<std::byte, kBytes> bytes{};
    bytes[0] = std::byte{2};
    bytes[5] = static_cast<std::byte>((from + ahead) % kBoxes);
    for (int i = 0; i < frames; ++i) boxes_[from]->receive(kHost, Frame::of(Payload::copy_of(bytes)), i * 82_ns);
  }
  // A slow host pauses its switch for `quanta`.
  void pause_host(std::uint32_t box, std::uint16_t quanta) {
    PriorityPause pause{.enabled = 1};
    pause.quanta[0] = quanta;
    boxes_[box]->receive(kHost, to_frame(pause, {}), 0_ns);
  }
  void run(double us) { sc_core::sc_start(us, sc_core::SC_US); }

  const bool fresh_ = (sc_core::sc_get_curr_simcontext()->reset(), true);  // before all members with alarms
  std::vector<std::unique_ptr<Switch>> boxes_;
  PauseDeadlock deadlock_{
      [](PauseDeadlock::End end) { return "box" + std::to_string(end.box) + " port " + std::to_string(end.port); }};
  int delivered_ = 0;
};

// Each host sends to the second next: every link carries two flows, and every buffer waits for the next buffer.
TEST_F(Ring, ThatIsFullAllAroundIsFound) {
  for (std::uint32_t i = 0; i < kBoxes; ++i) send(i, 2);
  run(100);
  EXPECT_THAT(deadlock_.found(), HasSubstr("PFC deadlock"));
  for (std::uint32_t i = 0; i < kBoxes; ++i)
    EXPECT_THAT(deadlock_.found(), HasSubstr("box" + std::to_string(i) + " port 0, priority 0: holds"));
  const auto delivered = delivered_;
  run(2000);
  EXPECT_EQ(delivered_, delivered);
}

TEST_F(Ring, WithLessTrafficIsNone) {
  for (std::uint32_t i = 0; i < kBoxes; ++i) send(i, 1);
  run(500);
  EXPECT_EQ(deadlock_.found(), "");
  EXPECT_EQ(delivered_, 300);
}

// A host that takes nothing for a while stops all buffers in the end; they continue when the host does.
TEST_F(Ring, ASlowHostIsNoDeadlock) {
  pause_host(2, 65535);  // 335 us
  send(0, 2);
  send(1, 1);
  run(300);
  EXPECT_EQ(delivered_, 0);
  EXPECT_GT(boxes_[1]->port_counters(kBefore).stopped_ps[0], 0u);
  EXPECT_EQ(deadlock_.found(), "");
  run(500);
  EXPECT_EQ(delivered_, 200);
  EXPECT_EQ(deadlock_.found(), "");
}

// The same ring, but one of three flows goes only one switch further: the buffers can still drain.
TEST_F(Ring, OneFlowThatEndsSoonerKeepsItOpen) {
  send(0, 2);
  send(1, 2);
  send(2, 1);
  run(1000);
  EXPECT_EQ(deadlock_.found(), "");
  EXPECT_EQ(delivered_, 300);
}

}  // namespace
}  // namespace rnicsim::fabric::pause_deadlock_test
