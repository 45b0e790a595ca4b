// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/time/long_turn.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rnicsim::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Reports within `how_long`, with a check each millisecond, for a thread that has `percent` of a processor.
std::vector<std::string> complaints(milliseconds how_long, int percent, bool is_stopped = false) {
  LongTurn turn;
  std::vector<std::string> said;
  for (milliseconds waited{0}; waited < how_long; ++waited) {
    const auto look = [&] { return LongTurn::Facts{seconds(1000) + waited * percent / 100, is_stopped}; };
    if (const auto why = turn.complaint(waited, look)) said.push_back(*why);
  }
  return said;
}

using Said = std::vector<std::string>;

TEST(LongTurnTest, SaysWhoRuns) {
  EXPECT_EQ(complaints(milliseconds(2900), 100), Said{});
  EXPECT_EQ(complaints(seconds(7), 100), (Said{"has run for 3 s without a call", "has run for 6 s without a call"}));
}

TEST(LongTurnTest, DoesNotCountTheWaitForAProcessor) {
  EXPECT_EQ(complaints(seconds(11), 25), Said{});
  EXPECT_EQ(complaints(seconds(13), 25), Said{"has run for 3 s without a call"});
}

TEST(LongTurnTest, SaysWhoIsHeldUp) {
  EXPECT_EQ(complaints(seconds(29), 0), Said{});
  EXPECT_EQ(complaints(seconds(31), 0), Said{"has not come back for 30 s"});
}

TEST(LongTurnTest, SaysWhoIsStopped) {
  EXPECT_EQ(complaints(seconds(4), 0, true), Said{"is stopped, and continues at SIGCONT (fg or bg in the shell)"});
}

}  // namespace
}  // namespace rnicsim::sim
