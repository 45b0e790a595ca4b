// SPDX-License-Identifier: Apache-2.0
// Reads of one line of the host's memory: they follow one another, and other reads do not wait for them.
#include <gtest/gtest.h>

#include <vector>

#include "tests/timing/dma_bench.h"

namespace rnicsim::nic::test {
namespace {

using namespace rnicsim::literals;

constexpr Duration kLine = 100_ns;

class LineReads : public ::testing::Test {
 protected:
  static DmaParams params(Duration line) {
    DmaParams params;
    params.line_read = line;
    return params;
  }
  // Completion times of 8-byte reads that are all requested at time 0, in the order of the requests.
  static std::vector<Duration> done(Duration line, const std::vector<std::uint64_t>& addresses, bool payload = true) {
    DmaBench bench(params(line));
    bench.at({}, [&] {
      for (const auto address : addresses) payload ? bench.read_payload(address, 8) : bench.read(address, 8);
    });
    bench.run();
    std::vector<Duration> times;
    for (const auto& access : bench.accesses) {
      EXPECT_EQ(access.times_done, 1);
      times.push_back(access.done);
    }
    return times;
  }
};

TEST_F(LineReads, FollowOneAnotherAtTheHostsPace) {
  const auto apart = done({}, {0, 64, 128, 192});
  const auto together = done(kLine, {0, 8, 63, 0});
  for (std::size_t i = 1; i < together.size(); ++i) {
    // The link's time for a read is within that interval.
    EXPECT_GE(together[i] - together[i - 1], kLine - (apart[i] - apart[i - 1]) - 1_ps) << i;
    EXPECT_LE(together[i] - together[i - 1], kLine) << i;
  }
  EXPECT_EQ(together[0], apart[0]);
}

TEST_F(LineReads, OthersPassThoseThatWait) {
  const auto free = done({}, {0, 0, 0, 64, 128});
  const auto times = done(kLine, {0, 0, 0, 64, 128});
  for (const std::size_t other : {3, 4}) {
    EXPECT_LE(times[other], free[other]) << other;
    EXPECT_LT(times[other], times[1]) << other;
  }
}

// The reader of a ring depends on the order of reads.
TEST_F(LineReads, OnlyPayloadWaits) { EXPECT_EQ(done(kLine, {0, 0, 0, 64}, false), done({}, {0, 0, 0, 64}, false)); }

TEST_F(LineReads, AResetForgetsWhoWaits) {
  DmaBench bench(params(kLine));
  bench.at({}, [&] {
    for (int i = 0; i < 4; ++i) bench.read_payload(0, 8);
    bench.dma().reset();
    bench.read_payload(0, 8);
  });
  bench.run();
  for (std::size_t i = 0; i < bench.accesses.size(); ++i) EXPECT_EQ(bench.accesses[i].times_done, i == 4) << i;
}

}  // namespace
}  // namespace rnicsim::nic::test
