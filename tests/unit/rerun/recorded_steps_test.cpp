// SPDX-License-Identifier: Apache-2.0
// Steps of a recorded run: times of stores, and inconsistent traces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include "sim/config/config_error.h"
#include "sim/rerun/recorded_steps.h"
#include "sim/trace_file/trace_writer.h"

namespace rnicsim::sim::rerun {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr Duration kMicrosecond{1'000'000};
Duration us(std::int64_t count) { return kMicrosecond * count; }

RecordedSteps steps_of(const std::vector<TraceEvent>& events) {
  std::stringstream file;
  TraceHeader header;
  header.time = "sim";
  header.hosts = {"h0", "h1"};
  TraceWriter writer(file, header);
  for (const auto& event : events) writer.write(event);
  writer.finish(events.empty() ? Duration{} : events.back().at);
  TraceReader reader(file, "a trace");
  static const std::vector<std::uint32_t> hosts{0, 1};
  return RecordedSteps(reader, hosts);
}
TraceEvent event(std::int64_t at, EventKind kind, std::initializer_list<std::uint64_t> fields, std::uint32_t host = 0) {
  return make_event(us(at), host, kind, fields);
}
TraceEvent store(std::int64_t at, std::int64_t since, std::uint64_t value, std::uint64_t address = 0x1000) {
  return event(at, EventKind::memory, {1, address, 8, std::uint64_t(us(since).ps), value});
}
TraceEvent request(std::int64_t at, std::uint32_t host = 0) {
  return event(at, EventKind::mmio_write, {0x1000, 8, 0, 1}, host);
}

std::vector<std::pair<EventKind, std::int64_t>> order_of(const RecordedSteps& steps) {
  std::vector<std::pair<EventKind, std::int64_t>> order;
  for (const auto& step : steps.steps()) order.emplace_back(step.kind, step.at.ps / kMicrosecond.ps);
  return order;
}

using enum EventKind;
using Order = std::vector<std::pair<EventKind, std::int64_t>>;

TEST(RecordedSteps, AStoreComesBeforeTheFirstRequestOfItsTime) {
  const auto steps = steps_of({request(1), request(3), request(5), store(7, 2, 1)});
  EXPECT_EQ(order_of(steps), (Order{{mmio_write, 1}, {memory, 3}, {mmio_write, 3}, {mmio_write, 5}}));
  EXPECT_TRUE(steps.steps()[1].precedes_request);
  EXPECT_EQ(steps.steps()[1].wait, Step::Wait::none) << "nothing was stored there before";
}

TEST(RecordedSteps, RequestsOfAnotherHostDoNotCount) {
  const auto steps = steps_of({request(1), request(3, 1), store(7, 2, 1)});
  EXPECT_EQ(order_of(steps), (Order{{mmio_write, 1}, {memory, 2}, {mmio_write, 3}}));
  EXPECT_FALSE(steps.steps()[1].precedes_request);
}

TEST(RecordedSteps, AStoreOverAnotherWaitsForItsReader) {
  const auto steps = steps_of({request(1), store(2, 0, 1), request(3), request(5), store(7, 2, 2)});
  EXPECT_EQ(order_of(steps),
            (Order{{memory, 1}, {mmio_write, 1}, {memory, 3}, {mmio_write, 3}, {memory, 5}, {mmio_write, 5}}));
  EXPECT_EQ(steps.steps()[2].wait, Step::Wait::for_access);
  EXPECT_EQ(steps.steps()[4].wait, Step::Wait::no_longer);
}

TEST(RecordedSteps, OtherWordsOfALineDoNotCountAsStoredBefore) {
  const auto steps = steps_of({request(1), store(2, 0, 1), request(3), request(5), store(7, 2, 2, 0x1008)});
  for (const auto& step : steps.steps()) EXPECT_EQ(step.wait, Step::Wait::none);
}

TEST(RecordedSteps, AWqeComesBeforeItsBlueFlameWrite) {
  const auto line = [](std::uint64_t first) { return std::array<std::uint64_t, 8>{first, 2, 3, 4, 5, 6, 7, 8}; };
  std::vector<TraceEvent> events{request(1)};
  const auto blue_flame = [&](std::int64_t at, std::uint64_t first) {
    auto write = event(at, mmio_write, {0x1800, 64, 0});
    std::ranges::copy(line(first), write.fields.begin() + 3);
    events.push_back(write);
  };
  blue_flame(3, 10);
  blue_flame(4, 11);
  blue_flame(5, 12);
  auto fetched = event(7, memory, {1, 0x1000, 64, 0});
  std::ranges::copy(line(11), fetched.fields.begin() + 4);
  events.push_back(fetched);
  // Only the first word differs.
  events.push_back(event(8, memory, {1, 0x1000, 8, std::uint64_t(us(2).ps), 12}));
  const auto steps = steps_of(events);
  EXPECT_EQ(order_of(steps),
            (Order{{mmio_write, 1}, {mmio_write, 3}, {memory, 4}, {mmio_write, 4}, {memory, 5}, {mmio_write, 5}}));
}

TEST(RecordedSteps, MemoryIsGoneBeforeTheDeviceFindsItGone) {
  const auto steps = steps_of({request(1), request(3), event(3, memory_absent, {1, 0x1000, 4096})});
  ASSERT_EQ(steps.steps().size(), 3u);
  EXPECT_EQ(steps.steps()[1].kind, memory_absent);
  EXPECT_EQ(steps.steps()[1].at, us(3) - Duration{1});
}

TEST(RecordedSteps, AStepHasWhatItWaitedFor) {
  const auto steps = steps_of({event(1, awaited, {2, 0, 3, 1, std::uint64_t(us(1).ps)}), request(2), request(3)});
  const auto* output = steps.awaited_by(steps.steps()[0]);
  ASSERT_NE(output, nullptr);
  EXPECT_EQ(output->what, Awaited::interrupt);
  EXPECT_EQ(output->address, 3u);
  EXPECT_EQ(steps.awaited_by(steps.steps()[1]), nullptr);
}

TEST(RecordedSteps, TracesThatLieAreRefused) {
  const auto refuses = [](std::vector<TraceEvent> events, const char* why) {
    EXPECT_THAT([&] { steps_of(events); }, ThrowsMessage<TraceError>(HasSubstr(why)));
  };
  refuses({event(1, mmio_write, {0, 0, 0})}, "a wrong length");
  refuses({event(1, mmio_write, {0, 257, 0})}, "a wrong length");
  refuses({event(1, mmio_write, {~0ull, 8, 0})}, "beyond BAR0");
  refuses({event(1, mmio_write, {0, 128, 64})}, "without those before");
  refuses({event(1, mmio_write, {0, 192, 0}), event(1, mmio_write, {0, 192, 128})}, "without those before");
  refuses({event(1, mmio_read, {0, 9})}, "a wrong length");
  refuses({event(1, config_write, {1ull << 40, 4, 1})}, "beyond BAR0");
  refuses({event(1, memory, {1, 0, 65, 0})}, "a wrong length or time");
  refuses({event(1, memory, {1, 0, 8, std::uint64_t(us(2).ps)})}, "a wrong length or time");
  refuses({event(1, memory_pinned, {1, 0, ~0ull, 1, 1})}, "too long");
  refuses({event(1, memory_absent, {1, 0, ~0ull})}, "too long");
  refuses({event(1, awaited, {4, 0, 0, 1, 0})}, "a wait for nothing");
  refuses({event(1, awaited, {1, 0, 0, 0, 0})}, "a wait for nothing");
  refuses({event(1, awaited, {1, 0, 0, 1, std::uint64_t(us(2).ps)})}, "a wait for nothing");
}

TEST(RecordedSteps, MemoryOnDemandIsRefused) {
  EXPECT_THROW(steps_of({event(1, memory_on_demand, {1, 0, 4096})}), ConfigError);
}

}  // namespace
}  // namespace rnicsim::sim::rerun
