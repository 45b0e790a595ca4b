// SPDX-License-Identifier: Apache-2.0
// Comparison of two traces with a tolerance for times: differences, and the events that they name.
#include <gmock/gmock.h>

#include <sstream>

#include "sim/trace_file/cause.h"
#include "sim/trace_file/loose_diff.h"
#include "sim/trace_file/trace_reader.h"
#include "sim/trace_file/trace_writer.h"

namespace rnicsim::sim::loose_diff_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace literals;

using Events = std::vector<TraceEvent>;

constexpr std::uint64_t kQp = 0x40, kOther = 0x41;

TraceEvent wqe(Duration at, std::uint64_t index, std::uint64_t qp = kQp) {
  return make_event(at, 0, EventKind::wqe, {qp, 0, index, 1, 64, 1});
}
TraceEvent cqe(Duration at, std::uint64_t index, std::uint64_t qp = kQp) {
  return make_event(at, 0, EventKind::cqe, {qp, 1, index});
}
TraceEvent frame(Duration at, std::uint64_t bytes, Duration arrives_in = 90_ns) {
  return make_event(at, 1, EventKind::frame_received, {bytes, std::uint64_t(arrives_in.ps)});
}

std::string file_of(Events events) {
  std::ranges::stable_sort(events, {}, &TraceEvent::at);
  std::ostringstream out;
  TraceWriter writer(out, {.program = "1", .title = {}, .seed = 1, .time = "sim", .hosts = {"h0", "h1"}});
  for (const auto& event : events) writer.write(event);
  writer.finish(1_s);
  return out.str();
}

TraceDifference compare(const Events& a, const Events& b, const TimeTolerance& tolerance,
                        std::optional<EventKind> left_out = {}) {
  std::istringstream first(file_of(a)), second(file_of(b));
  TraceReader left(first, "A"), right(second, "B");
  if (left_out) left.leave_out(*left_out), right.leave_out(*left_out);
  return tolerance.exact() ? compare_traces(left, right) : compare_traces_loosely(left, right, tolerance);
}

const Events kExpected{wqe(1_us, 0), cqe(2_us, 0), wqe(3_us, 1), cqe(4_us, 1)};
const TimeTolerance kTenNs{10_ns, 0};

TEST(LooseDiff, AnIntervalMayDifferByTheToleranceAndNoMore) {
  const auto with = [](Duration late) { return Events{wqe(1_us, 0), cqe(2_us + late, 0), wqe(3_us, 1), cqe(4_us, 1)}; };
  EXPECT_TRUE(compare(kExpected, with(10_ns), kTenNs).equal);
  const auto difference = compare(kExpected, with(Duration{10'001}), kTenNs);
  EXPECT_FALSE(difference.equal);
  EXPECT_THAT(difference.events, StartsWith("event 1: +10.001 ns: +1 us after the event before in A, +1.010001 us in "
                                            "B; 10 ns may differ\n  the last events of QP 0x40 of h0 in A:\n"));
  EXPECT_THAT(difference.events, HasSubstr("      1.000000 us  h0  wqe  qp 0x40"));
  EXPECT_THAT(difference.events, HasSubstr("  A:  2.000000 us  h0  cqe"));
  EXPECT_THAT(difference.events, HasSubstr("  B:  2.010001 us  h0  cqe"));
}

// A delay counts once, at its cause: later intervals are unchanged.
TEST(LooseDiff, ADelayIsNotCountedAgain) {
  Events late = kExpected;
  for (std::size_t i = 1; i < late.size(); ++i) late[i].at += 10_ns;
  EXPECT_TRUE(compare(kExpected, late, kTenNs).equal);
  for (std::size_t i = 2; i < late.size(); ++i) late[i].at += 10_ns;
  EXPECT_TRUE(compare(kExpected, late, kTenNs).equal) << "20 ns in all, 10 at a time";
  EXPECT_FALSE(compare(kExpected, late, {9_ns, 0}).equal);
}

TEST(LooseDiff, TheGreaterOfTheTwoCounts) {
  Events late = kExpected;
  late[3].at += 50_ns;
  EXPECT_TRUE(compare(kExpected, late, {{}, 0.05}).equal);
  EXPECT_FALSE(compare(kExpected, late, {{}, 0.049}).equal);
  EXPECT_TRUE(compare(kExpected, late, {50_ns, 0.01}).equal);
  EXPECT_TRUE(compare(kExpected, late, {1_ns, 0.05}).equal);
}

TEST(LooseDiff, QueuePairsMayMoveAgainstEachOther) {
  const auto two = [](Duration later) {
    return Events{wqe(1_us, 0), cqe(2_us, 0), wqe(1_us + later, 0, kOther), cqe(2_us + later, 0, kOther)};
  };
  EXPECT_FALSE(compare(two(100_ns), two(200_ns), kTenNs).equal) << "its first event is late itself";
  EXPECT_TRUE(compare(two(100_ns), two(200_ns), {100_ns, 0}).equal);
  EXPECT_TRUE(compare(two(20_ns), two(0_ns - 20_ns), {40_ns, 0}).equal) << "they change places";
}

TEST(LooseDiff, EventsOfAQueuePairChangePlacesAsFarAsTheirTimesMay) {
  const Events a{wqe(1_us, 0), cqe(2_us, 0), wqe(2_us + 5_ns, 1)};
  const Events b{wqe(1_us, 0), wqe(2_us - 4_ns, 1), cqe(2_us, 0)};
  EXPECT_TRUE(compare(a, b, kTenNs).equal);
  EXPECT_FALSE(compare(a, b, {8_ns, 0}).equal);
}

TEST(LooseDiff, ContentsMayNotDiffer) {
  Events other = kExpected;
  other[2] = wqe(3_us, 7);
  EXPECT_THAT(compare(kExpected, other, kTenNs).events, StartsWith("event 2: index 1 -> 7\n"));
}

TEST(LooseDiff, NorMayAnEventBeMissingOrTooMany) {
  Events shorter = kExpected;
  shorter.pop_back();
  const auto missing = compare(kExpected, shorter, kTenNs);
  EXPECT_THAT(missing.events, StartsWith("event 3: B has no such cqe\n"));
  EXPECT_THAT(missing.events, HasSubstr("\n  B:  no such event\n"));
  const auto surplus = compare(shorter, kExpected, kTenNs);
  EXPECT_FALSE(surplus.equal);
  EXPECT_THAT(surplus.events, StartsWith("B has 1 event(s) that A lacks\n"));
  EXPECT_THAT(surplus.events, HasSubstr("\n  B:  4.000000 us  h0  cqe"));
}

TEST(LooseDiff, FramesAreComparedWithoutTimeAndOrder) {
  const Events a{frame(1_us, 62), frame(2_us, 1086)};
  EXPECT_TRUE(compare(a, {frame(3_us, 1086), frame(4_us, 62)}, kTenNs).equal);
  EXPECT_FALSE(compare(a, {frame(1_us, 62), frame(2_us, 62)}, kTenNs).equal);
}

TEST(LooseDiff, ADurationWithinAnEventIsATimeToo) {
  EXPECT_TRUE(compare({frame(1_us, 62)}, {frame(1_us, 62, 100_ns)}, kTenNs).equal);
  EXPECT_THAT(compare({frame(1_us, 62)}, {frame(1_us, 62, 101_ns)}, kTenNs).events,
              StartsWith("event 0: arrives_in 90 ns -> 101 ns\n"));
}

TEST(LooseDiff, AKindMayBeLeftOut) {
  Events other = kExpected;
  other.erase(other.begin() + 2);
  for (const auto& tolerance : {TimeTolerance{}, kTenNs}) EXPECT_FALSE(compare(kExpected, other, tolerance).equal);
  EXPECT_TRUE(compare(kExpected, other, {}, EventKind::wqe).equal);
  EXPECT_TRUE(compare(kExpected, other, {1_us, 0}, EventKind::wqe).equal);
  EXPECT_FALSE(compare(kExpected, other, {}, EventKind::cqe).equal);
}

TraceDifference compare_order(const Events& a, const Events& b) {
  std::istringstream first(file_of(a)), second(file_of(b));
  TraceReader left(first, "A"), right(second, "B");
  return sim::compare_order(left, right);
}

TEST(OrderDiff, TimesDoNotCount) {
  Events late = kExpected;
  for (std::size_t i = 0; i < late.size(); ++i) late[i].at += Duration{std::int64_t(i) * 777'777};
  const auto difference = compare_order(kExpected, late);
  EXPECT_TRUE(difference.equal) << difference.events;
  EXPECT_EQ(difference.events, "equal in their order: 4 events\n");
  EXPECT_TRUE(compare_order({frame(1_us, 62)}, {frame(9_us, 62, 500_ns)}).equal) << "nor those within an event";
}

TEST(OrderDiff, QueuePairsMayMoveAgainstEachOtherButNotWithin) {
  const Events a{wqe(1_us, 0), wqe(2_us, 0, kOther), cqe(3_us, 0), cqe(4_us, 0, kOther)};
  EXPECT_TRUE(compare_order(a, {wqe(2_us, 0), wqe(1_us, 0, kOther), cqe(4_us, 0), cqe(3_us, 0, kOther)}).equal);
  const auto difference = compare_order(kExpected, {wqe(1_us, 0), wqe(2_us, 1), cqe(3_us, 0), cqe(4_us, 1)});
  EXPECT_THAT(difference.events, StartsWith("event 1: another event\n  the last events of QP 0x40 of h0 in A:\n"));
  ASSERT_TRUE(difference.first);
  EXPECT_THAT(difference.first->a.events.front(), HasSubstr("cqe"));
  EXPECT_THAT(difference.first->b.events.front(), HasSubstr("wqe  qp 0x40"));
}

TEST(OrderDiff, ContentsAndCountsDo) {
  Events other = kExpected;
  other[2] = wqe(3_us, 7);
  EXPECT_THAT(compare_order(kExpected, other).events, StartsWith("event 2: index 1 -> 7\n"));
  Events shorter = kExpected;
  shorter.pop_back();
  EXPECT_THAT(compare_order(kExpected, shorter).events, StartsWith("event 3: B has no such cqe\n"));
  EXPECT_THAT(compare_order(shorter, kExpected).events, StartsWith("B has 1 event(s) that A lacks\n"));
}

TEST(Causes, TheBlockTheStepAndTheParametersThatActOnIt) {
  Events late = kExpected;
  late[1].at += 5_ns;
  auto difference = compare(kExpected, late, {});
  difference.headers = {{"seed", "1", "2", false},
                        {"nic.pcie.write_latency", "3 ns", "4 ns", true},
                        {"nic.tx.latency", "1 ns", "2 ns", true},
                        {"nic.units.new", "(none)", "2 ns", true, false}};
  const std::vector<std::string> hosts{"h0", "h1"};
  const auto cause = cause_of(difference, hosts);
  EXPECT_EQ(cause.block, "nic.completion of h0");
  EXPECT_EQ(to_text(cause),
            "  first in: nic.completion of h0: the transport, and the write of completions\n"
            "  step: after wqe of QP 0x40 of h0: A +1 us | B +1.005 us\n"
            "  cause: seed: 1 | 2; nic.pcie.write_latency: 3 ns | 4 ns\n"
            "  also differ: nic.tx.latency: 1 ns | 2 ns\n");
  ASSERT_EQ(cause.one_sided.size(), 1);
  difference.headers.erase(difference.headers.begin(), difference.headers.begin() + 2);
  EXPECT_THAT(to_text(cause_of(difference, hosts)),
              HasSubstr("  cause: code, or a parameter that is not known to act on this block\n"
                        "  also differ: nic.tx.latency: 1 ns | 2 ns\n"));
}

TEST(Causes, WithoutAnyOtherConfigurationItIsCode) {
  Events other = kExpected;
  other[2] = wqe(3_us, 7);
  EXPECT_THAT(to_text(cause_of(compare(kExpected, other, {}), {})),
              HasSubstr("  cause: no parameter, seed, command or version differs: the code of the model"));
}

// A frame is received later because it was sent later: the receiver's event is recorded first.
TEST(Causes, TheSenderOfAFrame) {
  const auto with = [](Duration at) {
    return Events{wqe(1_us, 0), make_event(at, 1, EventKind::frame_received, {62, 90'000}),
                  make_event(at, 0, EventKind::frame_sent, {62})};
  };
  const std::vector<std::string> hosts{"h0", "h1"};
  const auto cause = cause_of(compare(with(2_us), with(2_us + 1_ns), {}), hosts);
  EXPECT_EQ(cause.block, "nic.port of h0");
  EXPECT_EQ(cause.step, "after wqe of QP 0x40 of h0: A +1 us | B +1.001 us");
  auto slow = with(2_us);
  slow[1].fields[1] = 190'000;
  EXPECT_EQ(cause_of(compare(with(2_us), slow, {}), hosts).block, "nic.port of h1") << "it left as before";
}

// Only the ends of the traces differ: no event names a block.
TEST(Causes, NoEventNoBlock) {
  TraceDifference difference{
      false, {}, {}, {}, Divergence{.what = "the events are equal, but A ends at 1 us and B at 2 us"}};
  EXPECT_EQ(cause_of(difference, {}).block, "");
}

}  // namespace
}  // namespace rnicsim::sim::loose_diff_test
