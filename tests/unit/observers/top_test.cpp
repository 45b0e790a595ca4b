// SPDX-License-Identifier: Apache-2.0
// The view that `rnicsim top` computes from two snapshots.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "sim/adapter.h"
#include "sim/adapter_counters.h"
#include "sim/snapshot.h"
#include "sim/top/page.h"
#include "sim/top/view.h"

namespace rnicsim::sim::top {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr Duration kMillisecond{1'000'000'000};

// Two hosts: h1 sends to h0.
class TopTest : public testing::Test {
 protected:
  static Snapshot snapshot(const AdapterCounters& h0, const AdapterCounters& h1, Duration time, std::int64_t wall_ns) {
    Snapshot snapshot;
    snapshot.pid = 77;
    snapshot.command = "rnicsim run -- program";
    snapshot.time = time;
    snapshot.wall_ns = wall_ns;
    snapshot.adapters = {{"h0", CounterList(h0)}, {"h1", CounterList(h1)}};
    snapshot.programs = {{"h1", "program (pid 2000)", {"polling a queue", "sleeping"}}};
    return snapshot;
  }

  // Snapshots at 5 ms and 7 ms, half a second apart.
  static View after_two_milliseconds() {
    AdapterCounters h0, h1;
    h1.nic.port.tx_bytes = 1'000;
    h1.nic.engine.packet_seq_err = 3;
    const Snapshot before = snapshot(h0, h1, 5 * kMillisecond, 1'000'000'000);
    h1.nic.port.tx_bytes += 22'600'000;
    h1.nic.port.tx_busy_ps += 2'000'000'000;
    h1.nic.tx.packets += 100'000;
    h0.nic.rx.packets += 99'000;
    h1.nic.engine.packet_seq_err += 2;
    h1.nic.contexts.qpc.l0_hits += 60;
    h1.nic.contexts.qpc.l1_hits += 15;
    h1.nic.contexts.qpc.misses += 25;
    return make_view(&before, snapshot(h0, h1, 7 * kMillisecond, 1'500'000'000));
  }
};

TEST_F(TopTest, RatesAreOverSimulatedTime) {
  const View view = after_two_milliseconds();
  EXPECT_EQ(view.interval, 2 * kMillisecond);
  EXPECT_DOUBLE_EQ(view.speed.value(), 0.004);
  const AdapterView& h1 = view.adapters.at(1);
  EXPECT_DOUBLE_EQ(h1.transmitted, 90.4e9);
  EXPECT_DOUBLE_EQ(h1.packets_sent, 50e6);
  EXPECT_DOUBLE_EQ(view.adapters.at(0).packets_received, 49.5e6);
  EXPECT_DOUBLE_EQ(h1.qpc.value(), 0.75);
  EXPECT_FALSE(h1.mtt);  // no lookups
  EXPECT_EQ(h1.retries, 2);
}

TEST_F(TopTest, TheBusiestComesFirst) {
  const AdapterView h1 = after_two_milliseconds().adapters.at(1);
  EXPECT_EQ(h1.shares.front().resource, "port.tx");
  EXPECT_DOUBLE_EQ(h1.shares.front().value, 1);
}

TEST_F(TopTest, TroublesAreTotalsAndWhatIsNew) {
  const View view = after_two_milliseconds();
  EXPECT_TRUE(view.adapters.at(0).troubles.empty());
  ASSERT_EQ(view.adapters.at(1).troubles.size(), 1u);
  const auto& trouble = view.adapters.at(1).troubles.front();
  EXPECT_EQ(trouble.counter, "engine.packet_seq_err");
  EXPECT_EQ(trouble.total, 5u);
  EXPECT_EQ(trouble.grown, 2);
}

TEST_F(TopTest, OneSnapshotTellsOfAllTime) {
  AdapterCounters h0, h1;
  h1.nic.port.tx_bytes = 1'000'000;
  const View view = make_view(nullptr, snapshot(h0, h1, kMillisecond, 1));
  EXPECT_DOUBLE_EQ(view.adapters.at(1).transmitted, 8e9);
  EXPECT_FALSE(view.speed);
}

TEST_F(TopTest, NoTimeBetweenSnapshotsIsNoRate) {
  AdapterCounters h0, h1;
  const Snapshot before = snapshot(h0, h1, kMillisecond, 1);
  h1.nic.port.tx_bytes = 5;
  EXPECT_EQ(make_view(&before, before).adapters.at(1).transmitted, 0);
  EXPECT_EQ(make_view(&before, before).speed, std::nullopt);
}

TEST_F(TopTest, APageIsAsWideAsTheTerminal) {
  const View view = after_two_milliseconds();
  for (const std::size_t width : {40u, 80u, 120u, 200u}) {
    const Page page = make_page(view, width, Order::host);
    EXPECT_LE(page.head.back().text.size(), width);
    EXPECT_THAT(page.head.back().text, EndsWith("  busiest"));
    EXPECT_THAT(page.body.at(0).text, StartsWith("h0 "));
    EXPECT_THAT(page.body.at(1).text, EndsWith("  port.tx 100%"));
    EXPECT_LE(page.body.at(1).text.size(), width);
    EXPECT_EQ(page.body.at(1).kind, Line::Kind::trouble);
  }
  EXPECT_THAT(make_page(view, 80, Order::host).head.back().text, HasSubstr("retries"));
  EXPECT_THAT(make_page(view, 80, Order::transmitted).body.at(0).text, StartsWith("h1 "));
}

TEST_F(TopTest, ASnapshotComesThroughAsText) {
  AdapterCounters h0, h1;
  h1.nic.port.tx_bytes = UINT64_MAX;
  Snapshot sent = snapshot(h0, h1, kMillisecond, 42);
  sent.programs.front().name = "not \xff UTF-8";
  const std::string text = snapshot_text(sent);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const Snapshot read = read_snapshot(text);
  EXPECT_EQ(read.pid, sent.pid);
  EXPECT_EQ(read.time, sent.time);
  EXPECT_EQ(read.wall_ns, sent.wall_ns);
  EXPECT_EQ(read.programs.front().threads, sent.programs.front().threads);
  const auto& before = sent.adapters.at(1).counters.entries();
  const auto& after = read.adapters.at(1).counters.entries();
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].path, before[i].path);
    EXPECT_EQ(after[i].value, before[i].value);
    EXPECT_EQ(after[i].kind, before[i].kind);
    EXPECT_EQ(after[i].each, before[i].each);
    EXPECT_EQ(after[i].units, before[i].units);
  }
}

TEST_F(TopTest, WhatIsNoSnapshotIsRefused) {
  const std::string good = snapshot_text(snapshot({}, {}, kMillisecond, 1));
  for (std::size_t length = 0; length < good.size() - 1; length += 97)
    EXPECT_THROW(read_snapshot(good.substr(0, length)), std::runtime_error) << length;
  for (const char* text : {"", "{}", "[]", "7", R"({"format": 2})", R"({"format": 1, "pid": "x"})"})
    EXPECT_THROW(read_snapshot(text), std::runtime_error) << text;
}

}  // namespace
}  // namespace rnicsim::sim::top
