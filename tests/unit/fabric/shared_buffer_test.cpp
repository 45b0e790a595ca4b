// SPDX-License-Identifier: Apache-2.0
// A switch's packet memory: thresholds, headroom, and the division among queues.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <utility>
#include <vector>

#include "model/base/kernel.h"
#include "model/fabric/ingress_buffer.h"
#include "model/fabric/shared_buffer.h"

namespace rnicsim::fabric::shared_buffer_test {
namespace {

using namespace rnicsim::literals;
using Use = SharedBuffer::Use;

[[maybe_unused]] const int seeded = ::setenv("RC_PARAMS", "seed=1", 0);

constexpr std::uint32_t kMtu = 1'500;
constexpr std::size_t kPorts = 8;

SwitchParams shared(std::uint64_t size, double dynamic_th) {
  SwitchParams params;
  params.buffer.size = {size};
  params.buffer.lossless.dynamic_th = params.buffer.lossy.dynamic_th = dynamic_th;
  params.pfc.priorities = 1 << 3;
  return params;
}

// Fills the queues in turn until none accepts another frame.
std::vector<Use> fill(SharedBuffer& buffer, std::size_t queues) {
  std::vector<Use> uses(queues);
  for (bool any = true; any;) {
    any = false;
    for (auto& use : uses) any = buffer.take_lossy(use, kMtu) || any;
  }
  return uses;
}

class Alpha : public testing::TestWithParam<double> {};

TEST_P(Alpha, SharesTheMemoryBetweenCongestedQueues) {
  constexpr std::uint64_t kSize = 10'000'000;
  const auto alpha = std::exp2(GetParam());
  for (const std::size_t queues : {1u, 2u, 3u, 7u}) {
    SharedBuffer buffer(shared(kSize, GetParam()), kPorts);
    const auto expected = alpha / (1 + alpha * static_cast<double>(queues)) * kSize;
    for (const auto& use : fill(buffer, queues)) EXPECT_NEAR(static_cast<double>(use.total()), expected, kMtu);
  }
}

TEST_P(Alpha, HoldsForInputBuffersWithoutLoss) {
  constexpr std::uint64_t kSize = 10'000'000;
  const auto alpha = std::exp2(GetParam());
  SharedBuffer buffer(shared(kSize, GetParam()), kPorts);
  Use use;
  while (!buffer.is_over(use)) ASSERT_TRUE(buffer.take_lossless(use, kMtu));
  EXPECT_NEAR(static_cast<double>(use.shared), alpha / (1 + alpha) * kSize, kMtu);
  // Frames that arrive until the pause takes effect fit in the headroom, and no more frames than that.
  const auto xoff = SwitchParams{}.buffer.lossless.xoff.bytes;
  while (buffer.take_lossless(use, kMtu)) continue;
  EXPECT_LE(use.headroom, xoff);
  EXPECT_GT(use.headroom + kMtu, xoff);
}

INSTANTIATE_TEST_SUITE_P(Thresholds, Alpha, testing::Values(-3, -1, 0, 1, 3));

TEST(SharedBuffer, APauseEndsAtXonOrBelowTheThreshold) {
  for (const std::uint64_t offset : {0u, 4'000u}) {
    auto params = shared(1'000'000, 0);
    params.buffer.lossless.xon = {20'000};
    params.buffer.lossless.xon_offset = {offset};
    SharedBuffer buffer(params, kPorts);
    Use use;
    while (!buffer.is_over(use)) ASSERT_TRUE(buffer.take_lossless(use, kMtu));
    EXPECT_FALSE(buffer.may_go_on(use));
    while (!buffer.may_go_on(use)) buffer.give_back(use, 100);
    // The threshold grows as the buffer shrinks: free memory is 1,000,000 minus the bytes in use.
    const auto free = 1'000'000 - use.shared;
    EXPECT_EQ(use.headroom, 0u);
    if (offset == 0)
      EXPECT_EQ(use.total(), 20'000u);
    else
      EXPECT_NEAR(static_cast<double>(use.total()), static_cast<double>(free - offset), 200);
  }
}

TEST(SharedBuffer, ReservedBytesAreThereWhateverTheOthersHold) {
  auto params = shared(1'000'000, 3);
  params.buffer.lossy.size = {3'000};
  SharedBuffer buffer(params, kPorts);
  fill(buffer, 7);
  Use late;
  EXPECT_TRUE(buffer.take_lossy(late, kMtu));
  EXPECT_TRUE(buffer.take_lossy(late, kMtu));
  EXPECT_EQ(late.reserved, 3'000u);
  EXPECT_EQ(late.shared, 0u);
}

TEST(SharedBuffer, ReservedBytesComeBeforeThePause) {
  auto params = shared(1'000'000, 0);
  params.buffer.mode = "static";
  params.buffer.lossless.static_th = {};
  params.buffer.lossless.size = {5'000};
  SharedBuffer buffer(params, kPorts);
  Use use;
  EXPECT_TRUE(buffer.take_lossless(use, 4'000));
  EXPECT_FALSE(buffer.is_over(use));
  EXPECT_TRUE(buffer.take_lossless(use, 1'000));
  EXPECT_TRUE(buffer.is_over(use));
  EXPECT_EQ(use.headroom, 0u);
}

TEST(SharedBuffer, TheHeadroomPoolIsForAllPorts) {
  auto params = shared(100'000, 0);
  params.buffer.lossless.xoff = {20'000};
  params.buffer.headroom_pool = {30'000};
  SharedBuffer buffer(params, kPorts);
  std::vector<Use> uses(3);
  for (auto& use : uses)
    while (buffer.take_lossless(use, 1'000)) continue;
  EXPECT_EQ(uses[0].headroom, 20'000u);
  EXPECT_EQ(uses[1].headroom, 10'000u);
  EXPECT_EQ(uses[2].headroom, 0u);
  EXPECT_EQ(buffer.most_headroom(), 30'000u);
}

TEST(SharedBuffer, WithoutASizeThresholdsAreThoseOfPfc) {
  SwitchParams params;
  params.pfc = {.priorities = 1, .xoff = {10'000}, .xon = {5'000}, .headroom = {3'000}};
  SharedBuffer buffer(params, kPorts);
  EXPECT_FALSE(buffer.counts_lossy());
  Use use;
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(buffer.take_lossless(use, 1'000));
  EXPECT_FALSE(buffer.is_over(use));
  EXPECT_TRUE(buffer.take_lossless(use, 1'000));
  EXPECT_TRUE(buffer.is_over(use));
  EXPECT_TRUE(buffer.take_lossless(use, 3'000));
  EXPECT_FALSE(buffer.take_lossless(use, 1));
  buffer.give_back(use, 7'999);
  EXPECT_FALSE(buffer.may_go_on(use));
  buffer.give_back(use, 1);
  EXPECT_TRUE(buffer.may_go_on(use));
}

// The threshold of a stopped buffer rises as other buffers release memory: its sender resumes although none of its own
// frames has left.
TEST(IngressBuffer, ASenderGoesOnWhenOthersGiveMemoryBack) {
  sc_core::sc_get_curr_simcontext()->reset();
  const auto params = shared(100'000, -1);
  SharedBuffer memory(params, 2);
  IngressBuffer ingress(params.pfc, {100_Gbps, 100_Gbps}, memory);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> told;  // ports and pause times in quanta
  ingress.pause.bind([&](std::uint32_t port, PriorityPause&& pause) { told.emplace_back(port, pause.quanta[3]); });
  const auto fill = [&](std::uint32_t port) {
    int frames = 0;
    for (const auto before = told.size(); told.size() == before; ++frames) EXPECT_TRUE(ingress.hold(port, 3, kMtu));
    return frames;
  };
  const int frames = fill(1);
  EXPECT_GT(fill(0), 12);  // more than XON
  told.clear();
  for (int i = 0; i < frames; ++i) ingress.let_go(1, 3, kMtu);
  EXPECT_EQ(told, (std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 0}, {1, 0}}));
  EXPECT_FALSE(ingress.stopped(0, 3));
}

// Another buffer uses all headroom. A buffer without headroom loses a frame, pauses its sender, and lets the sender
// resume when headroom is free again.
TEST(IngressBuffer, WithoutHeadroomASenderIsPausedAllTheSame) {
  sc_core::sc_get_curr_simcontext()->reset();
  auto params = shared(30'000, 8);
  params.buffer.lossless.xoff = params.buffer.headroom_pool = {10'000};
  SharedBuffer memory(params, 2);
  IngressBuffer ingress(params.pfc, {100_Gbps, 100_Gbps}, memory);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> told;
  ingress.pause.bind([&](std::uint32_t port, PriorityPause&& pause) { told.emplace_back(port, pause.quanta[3]); });
  int frames = 0;
  while (ingress.hold(1, 3, kMtu)) ++frames;
  told.clear();
  EXPECT_FALSE(ingress.hold(0, 3, kMtu));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].first, 0u);
  EXPECT_NE(told[0].second, 0u);
  for (int i = 0; i < frames; ++i) ingress.let_go(1, 3, kMtu);
  EXPECT_FALSE(ingress.stopped(0, 3));
  EXPECT_FALSE(ingress.stopped(1, 3));
  EXPECT_TRUE(ingress.hold(0, 3, kMtu));
}

// A frame that fits in no buffer: its sender is not paused for ever.
TEST(IngressBuffer, APauseOfAnEmptyBufferEnds) {
  sc_core::sc_get_curr_simcontext()->reset();
  SwitchParams params;
  params.pfc = {.priorities = 8, .xoff = {1'000}, .xon = {500}, .headroom = {}};
  SharedBuffer memory(params, 1);
  IngressBuffer ingress(params.pfc, {100_Gbps}, memory);
  ingress.pause.bind([](std::uint32_t, PriorityPause&&) {});
  EXPECT_FALSE(ingress.hold(0, 3, kMtu));
  EXPECT_TRUE(ingress.stopped(0, 3));
  sc_core::sc_start(1, sc_core::SC_MS);
  EXPECT_FALSE(ingress.stopped(0, 3));
}

// Random frames arrive and leave: each byte is counted once, no limit is exceeded, and all memory is released.
RC_GTEST_PROP(SharedBuffer, KeepsItsBooks, ()) {
  auto params = shared(*rc::gen::inRange<std::uint64_t>(20'000, 200'000), *rc::gen::inRange(-8, 9));
  if (*rc::gen::arbitrary<bool>()) params.buffer.mode = "static";
  params.buffer.lossless.static_th = params.buffer.lossy.static_th = {*rc::gen::inRange<std::uint64_t>(1, 100'000)};
  params.buffer.lossless.size = params.buffer.lossy.size = {*rc::gen::inRange<std::uint64_t>(0, 2'000)};
  params.buffer.lossless.xoff = {*rc::gen::inRange<std::uint64_t>(0, 30'000)};
  params.buffer.headroom_pool = {*rc::gen::inRange<std::uint64_t>(30'000, 60'000)};
  SharedBuffer buffer(params, 1);
  struct Queue {
    bool lossless;
    Use use;
    std::deque<std::uint32_t> frames;
    std::uint64_t bytes = 0;
  };
  std::vector<Queue> queues{{true, {}, {}}, {true, {}, {}}, {false, {}, {}}, {false, {}, {}}};
  const auto size = params.buffer.size.bytes, reserved = params.reserved_bytes(1);
  for (int i = 0; i < 300; ++i) {
    auto& queue = queues[*rc::gen::inRange<std::size_t>(0, queues.size())];
    if (*rc::gen::arbitrary<bool>() && !queue.frames.empty()) {
      buffer.give_back(queue.use, queue.frames.front());
      queue.bytes -= queue.frames.front();
      queue.frames.pop_front();
    } else {
      const auto bytes = *rc::gen::inRange<std::uint32_t>(60, 9'000);
      const auto before = queue.use.total();
      const bool was_over = buffer.is_over(queue.use);
      const bool taken = queue.lossless ? buffer.take_lossless(queue.use, bytes) : buffer.take_lossy(queue.use, bytes);
      RC_ASSERT(queue.use.total() == before + (taken ? bytes : 0));
      if (taken) queue.frames.push_back(bytes), queue.bytes += bytes;
      // A buffer uses headroom only when it is over its threshold. A buffer with headroom in use does not resume.
      if (queue.lossless && taken && was_over) RC_ASSERT(buffer.is_over(queue.use) || queue.use.headroom == 0);
      if (queue.use.headroom != 0) RC_ASSERT(buffer.is_over(queue.use) && !buffer.may_go_on(queue.use));
      if (queue.use.total() == 0) RC_ASSERT(buffer.may_go_on(queue.use));
    }
    std::uint64_t shared = 0, headroom = 0;
    for (const auto& each : queues) {
      RC_ASSERT(each.use.total() == each.bytes);
      RC_ASSERT(each.use.reserved <= params.buffer.lossy.size.bytes);
      RC_ASSERT(each.use.headroom <= params.buffer.lossless.xoff.bytes);
      shared += each.use.shared;
      headroom += each.use.headroom;
    }
    RC_ASSERT(shared + std::min(reserved, size) <= size);
    RC_ASSERT(headroom <= params.buffer.headroom_pool.bytes);
  }
}

}  // namespace
}  // namespace rnicsim::fabric::shared_buffer_test
