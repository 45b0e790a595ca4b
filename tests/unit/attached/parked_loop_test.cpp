// SPDX-License-Identifier: Apache-2.0
// Times at which a thread that is parked in a loop looks at memory.
#include "sim/attached/time/parked_loop.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

namespace rnicsim::sim {
namespace {

using namespace literals;

struct Described {
  std::uint64_t now = 1'000'000;
  std::uint64_t period = 360'000;
  std::vector<abi::LoopLook> looks{{0, 20'000}, {20'000, 40'000}, {40'000, 340'000}};
  std::vector<std::uint64_t> pages{0x7000'1000, 0x7000'5000};

  std::optional<ParkedLoop> loop() const {
    auto slot = std::make_unique<abi::ThreadSlot>();
    slot->now = now + period;
    slot->argument[5] = now;
    slot->argument[1] = period;
    slot->argument[2] = looks.size();
    slot->argument[3] = pages.size();
    std::memcpy(slot->input, looks.data(), looks.size() * sizeof(abi::LoopLook));
    std::memcpy(slot->input + looks.size() * sizeof(abi::LoopLook), pages.data(), pages.size() * 8);
    return ParkedLoop::from(*slot);
  }
};

TEST(ParkedLoop, TheNextLookIsTheFirstThatEndsWhenTheWriteIsVisible) {
  const auto loop = Described{}.loop();
  ASSERT_TRUE(loop);
  struct Row {
    Duration visible;
    std::uint32_t look;
    Duration begins, ends;
  };
  for (const Row& row :
       {Row{0_ns, 0, 1000_ns, 1020_ns}, Row{1020_ns, 0, 1000_ns, 1020_ns}, Row{1020_ns + 1_ps, 1, 1020_ns, 1040_ns},
        Row{1041_ns, 2, 1040_ns, 1340_ns}, Row{1340_ns, 2, 1040_ns, 1340_ns}, Row{1341_ns, 0, 1360_ns, 1380_ns},
        Row{1380_ns, 0, 1360_ns, 1380_ns}, Row{1_ms, 0, 1'000'000_ns, 1'000'020_ns}}) {
    const auto next = loop->first_look(row.visible);
    EXPECT_EQ(next.index, row.look) << to_string(row.visible);
    EXPECT_EQ(next.begins, row.begins) << to_string(row.visible);
    EXPECT_EQ(next.ends, row.ends) << to_string(row.visible);
  }
}

TEST(ParkedLoop, EachTimeHasTheLookThatStepByStepIsTheFirst) {
  const Described described;
  const auto loop = described.loop();
  for (Duration visible; visible < 5_us; visible += 7_ns) {
    Duration round = 1_us;
    std::size_t at = 0;
    const auto ends = [&] { return round + Duration{std::int64_t(described.looks[at].ends)}; };
    while (ends() < visible)
      if (++at == described.looks.size()) at = 0, round += 360_ns;
    const auto next = loop->first_look(visible);
    ASSERT_EQ(next.index, at) << to_string(visible);
    ASSERT_EQ(next.ends, ends()) << to_string(visible);
  }
}

TEST(ParkedLoop, OnlyWritesIntoItsPagesAreSeen) {
  const auto loop = Described{}.loop();
  EXPECT_TRUE(loop->sees(0x7000'1000, 1));
  EXPECT_TRUE(loop->sees(0x7000'1fff, 1));
  EXPECT_TRUE(loop->sees(0x7000'0ffe, 3));
  EXPECT_TRUE(loop->sees(0x7000'0000, 0x5001));
  EXPECT_FALSE(loop->sees(0x7000'0fff, 1));
  EXPECT_FALSE(loop->sees(0x7000'2000, 0x3000));
  EXPECT_FALSE(loop->sees(0x7000'6000, 64));
  Described all;
  all.pages.resize(abi::kMostLoopPages + 1);
  all.looks.resize(1);
  EXPECT_TRUE(all.loop()->sees(0x1234, 1));
}

TEST(ParkedLoop, NonsenseIsRefused) {
  const auto refused = [](auto&& change) {
    Described described;
    change(described);
    return !described.loop();
  };
  EXPECT_TRUE(refused([](Described& it) { it.looks.clear(); }));
  EXPECT_TRUE(refused([](Described& it) { it.looks[0].begins = 1; }));
  EXPECT_TRUE(refused([](Described& it) { it.looks[1].begins = 10'000; }));
  EXPECT_TRUE(refused([](Described& it) { it.looks[1].ends = 20'000; }));
  EXPECT_TRUE(refused([](Described& it) { it.looks[2].ends = 360'001; }));
  EXPECT_TRUE(refused([](Described& it) { it.period = ~0ull; }));
  EXPECT_TRUE(refused([](Described& it) { it.looks.resize(abi::kMostLoopLooks + 1); }));
}

}  // namespace
}  // namespace rnicsim::sim
