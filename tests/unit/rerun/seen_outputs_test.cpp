// SPDX-License-Identifier: Apache-2.0
// Outputs of its devices that software can have seen.
#include <gtest/gtest.h>

#include "sim/recording/seen_outputs.h"

namespace rnicsim::sim {
namespace {

constexpr Duration kDetect{80'000};

DeviceOutput write_at(std::int64_t ps, std::uint64_t count = 1) {
  return {Awaited::memory, 1, 0x1000, count, Duration{ps}};
}
DeviceOutput interrupt_at(std::int64_t ps) { return {Awaited::interrupt, 0, 0, 1, Duration{ps}}; }

TEST(SeenOutputs, AWriteIsSeenAfterTheTimeOfTheCpu) {
  SeenOutputs outputs(kDetect);
  outputs.add(write_at(1'000'000), Duration{1'000'000});
  EXPECT_FALSE(outputs.take(Duration{1'079'999}));
  const auto seen = outputs.take(Duration{1'080'000});
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->at, Duration{1'000'000});
  EXPECT_FALSE(outputs.take(Duration{2'000'000})) << "it was taken";
}

TEST(SeenOutputs, AnInterruptIsSeenAtOnceAndBehindAWriteThatIsNot) {
  SeenOutputs outputs(kDetect);
  outputs.add(write_at(1'000'000), Duration{1'000'000});
  outputs.add(interrupt_at(1'001'000), Duration{1'001'000});
  const auto seen = outputs.take(Duration{1'001'000});
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->what, Awaited::interrupt);
  EXPECT_FALSE(outputs.take(Duration{2'000'000})) << "the write came before what was seen";
}

TEST(SeenOutputs, TheLastOneCounts) {
  SeenOutputs outputs(kDetect);
  for (std::uint64_t i = 1; i <= 10'000; ++i) {
    const auto at = std::int64_t(i) * 1'000;
    outputs.add(write_at(at, i), Duration{at});
  }
  EXPECT_EQ(outputs.take(Duration{10'000'000})->count, 9'920u);
  EXPECT_EQ(outputs.take(Duration{10'080'000})->count, 10'000u);
}

}  // namespace
}  // namespace rnicsim::sim
