// SPDX-License-Identifier: Apache-2.0
// Counter tracks of a timeline: samples, and their reduction.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sim/results/json.h"
#include "sim/waterfall/counter_track.h"

namespace rnicsim::sim::counter_track_test {
namespace {

using namespace rnicsim::literals;

using Samples = std::vector<CounterTrack::Sample>;

TEST(CounterTrack, HasASampleWhereTheValueChanges) {
  CounterTrack track(1, "queue", "bytes");
  track.add(0_ns, 0);
  EXPECT_FALSE(track.has_changed());
  track.add(1_ns, 5);
  track.add(2_ns, 5);
  track.add(3_ns, 7);
  track.add(3_ns, 6);
  track.add(4_ns, 9);
  track.add(4_ns, 6);
  track.add(5_ns, 0);
  EXPECT_EQ(track.samples(), (Samples{{0_ns, 0}, {1_ns, 5}, {3_ns, 6}, {5_ns, 0}}));
  EXPECT_TRUE(track.has_changed());
}

TEST(CounterTrack, IsJson) {
  CounterTrack track(3, "port.h\"0.p0 queue", "bytes");
  track.add(1'234'567_ps, 4178);
  track.add(2_s, 0.1234567891);
  std::string text;
  track.append_to(text);
  text.resize(text.size() - 2);
  const auto events = Json::parse("[" + text + "]");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["ph"], Json("C"));
  EXPECT_EQ(events[0]["name"], Json("port.h\"0.p0 queue"));
  EXPECT_EQ(events[0]["pid"], Json(3));
  EXPECT_EQ(events[0]["args"], Json({{"bytes", 4178}}));
  EXPECT_NE(text.find("\"ts\":1.234567,"), std::string::npos);
  EXPECT_EQ(events[1]["ts"], Json(2e6));
  EXPECT_EQ(events[1]["args"]["bytes"], Json(0.123456789));
}

TEST(CounterTrack, KeepsItsOutline) {
  CounterTrack track(1, "queue", "bytes");
  for (int i = 0; i < 10'000; ++i) track.add(Duration{i * 1000}, i == 5678 ? 1e6 : i == 1234 ? -1e6 : i % 97);
  const auto all = track.samples();
  track.thin(100);
  const auto& few = track.samples();
  EXPECT_LE(few.size(), 100u);
  EXPECT_GT(few.size(), 20u);
  EXPECT_EQ(few.front(), all.front());
  EXPECT_EQ(few.back(), all.back());
  EXPECT_TRUE(std::ranges::find(few, CounterTrack::Sample{Duration{5'678'000}, 1e6}) != few.end());
  EXPECT_TRUE(std::ranges::find(few, CounterTrack::Sample{Duration{1'234'000}, -1e6}) != few.end());
  EXPECT_TRUE(std::ranges::is_sorted(few, {}, &CounterTrack::Sample::at));
  track.thin(0);
  EXPECT_LE(track.samples().size(), 4u);
  track.add(20_us, 3);
  EXPECT_EQ(track.samples().back(), (CounterTrack::Sample{20_us, 3}));
}

TEST(CounterTracks, TogetherHaveNoMoreThanTheirLimit) {
  CounterTracks tracks(1000);
  auto& busy = tracks.make(1, "a", "x");
  auto& calm = tracks.make(1, "b", "x");
  for (int i = 0; i < 50'000; ++i) {
    tracks.add(busy, Duration{i * 1000}, i % 2);
    if (i % 5000 == 0) tracks.add(calm, Duration{i * 1000}, i);
    ASSERT_LE(tracks.samples(), 1000u);
  }
  EXPECT_EQ(calm.samples().size(), 10u);  // fewer than its share
  EXPECT_GT(busy.samples().size(), 100u);
  EXPECT_EQ(tracks.samples(), busy.samples().size() + calm.samples().size());
}

TEST(CounterTracks, ManyHaveAFewSamplesEach) {
  CounterTracks tracks(10);
  std::vector<CounterTrack*> made;
  for (int i = 0; i < 100; ++i) made.push_back(&tracks.make(1, std::to_string(i), "x"));
  for (int i = 0; i < 1000; ++i)
    for (auto* track : made) tracks.add(*track, Duration{i * 1000}, i);
  EXPECT_LE(tracks.samples(), 2u * 4 * 100 + 1);
  for (auto* track : made) EXPECT_GE(track->samples().size(), 2u);
}

}  // namespace
}  // namespace rnicsim::sim::counter_track_test
