// SPDX-License-Identifier: Apache-2.0
// Path choice of a switch: ecmp, spray, flowlet and adaptive.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/base/policy_params.h"
#include "model/fabric/flow_hash.h"
#include "model/fabric/path_choice.h"
#include "sim/config/param_list.h"

namespace rnicsim::fabric::path_choice_test {
namespace {

using namespace rnicsim::literals;

// --- Policies as the configuration makes them.
struct Chosen {
  PolicyChoice<PathChoice> path{"ecmp"};
  void describe(ParamVisitor& visit) { path.describe(visit, "path", "which way"); }
};
using Settings = std::vector<std::pair<std::string, std::string>>;

std::unique_ptr<PathChoice> make(const std::string& name, const Settings& settings = {}, std::uint64_t seed = 1) {
  Chosen chosen;
  const sim::ParamList list(chosen);
  for (const auto& [key, text] : settings) EXPECT_EQ(list.find(name + "." + key)->assign(text), std::nullopt) << text;
  EXPECT_EQ(list.contradiction(), std::nullopt);
  return make_policy<PathChoice>(name, chosen.path.params(name), PathChoice::Random{seed, SmallGenerator(seed, 7)});
}
std::optional<std::string> refused(const std::string& key, const std::string& text) {
  Chosen chosen;
  return sim::ParamList(chosen).find(key)->assign(text);
}

// --- A switch's view, and frames.
struct View final : SwitchView {
  Duration time() const override { return now; }
  std::uint8_t priority_of(const Frame& frame) const override { return frame.traffic_class() >> 5; }
  std::uint64_t waiting_bytes(std::uint16_t port, std::uint8_t priority) const override {
    return waiting.at(port).at(priority);
  }
  std::uint64_t waiting_bytes(std::uint16_t port) const override {
    std::uint64_t sum = 0;
    for (const auto bytes : waiting.at(port)) sum += bytes;
    return sum;
  }

  Duration now = 1_us;
  std::array<std::array<std::uint64_t, 8>, 40> waiting{};
};

struct Fields {
  std::uint16_t source_port = 0xc000;
  std::uint32_t qp = 1;
  std::uint16_t port = 4791;
  std::uint8_t traffic_class = 0;
  bool fragment = false;
};
// UDP over IPv4, followed by a BTH.
std::vector<std::uint8_t> bytes_of(const Fields& of) {
  std::vector<std::uint8_t> bytes{2, 0, 0, 0, 0, 10, 2, 0, 0, 0, 0, 1, 0x08, 0x00};
  const std::uint8_t flags = of.fragment ? 0x20 : 0x40;
  const std::initializer_list<std::uint8_t> ip{
      0x45, of.traffic_class, 0, 86, 0, 0, flags, 0, 64, 17, 0, 0, 10, 0, 1, 1, 10, 0, 9, 1};
  bytes.insert(bytes.end(), ip);
  const auto low = [](std::uint32_t value) { return static_cast<std::uint8_t>(value); };
  bytes.insert(bytes.end(), {low(of.source_port >> 8), low(of.source_port), low(of.port >> 8), low(of.port)});
  bytes.insert(bytes.end(), {0, 66, 0, 0});
  bytes.insert(bytes.end(), {4, 0, 0xff, 0xff, 0, low(of.qp >> 16), low(of.qp >> 8), low(of.qp), 0, 0, 0, 0});
  bytes.resize(100);
  return bytes;
}
Frame frame_of(const std::vector<std::uint8_t>& bytes) {
  return Frame::of(Payload::copy_of(std::as_bytes(std::span(bytes))));
}
Frame packet(const Fields& fields = {}) { return frame_of(bytes_of(fields)); }
Frame ipv6_packet(std::uint32_t qp) {
  std::vector<std::uint8_t> bytes(100);
  bytes[12] = 0x86;
  bytes[13] = 0xdd;
  bytes[20] = 17;
  bytes[56] = 0x12;
  bytes[57] = 0xb7;
  bytes[69] = static_cast<std::uint8_t>(qp);  // offset 62 plus the BTH's last QPN byte
  return frame_of(bytes);
}

const std::vector<std::uint16_t> kPorts{4, 9, 11, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 3, 2, 1};
Ways ways_of(std::size_t count, std::uint32_t set = 1) { return {std::span(kPorts).first(count), set}; }

// Number of times that a policy chooses each way.
std::vector<int> counts(PathChoice& policy, std::size_t ways, int frames, const View& view = {}) {
  std::vector<int> counts(ways);
  const auto frame = packet();
  for (int i = 0; i < frames; ++i) ++counts.at(policy.choose(frame, ways_of(ways), view));
  return counts;
}
// Within three standard deviations.
void expect_share(int count, int of, double share) {
  EXPECT_NEAR(count, of * share, 3 * std::sqrt(of * share * (1 - share)));
}

// --- ecmp. Expected hash values come from an independent script.
TEST(Ecmp, AnswersDoNotChange) {
  const std::vector<std::pair<std::uint64_t, std::vector<std::uint32_t>>> known{
      {0, {12, 10, 1, 7, 8, 0, 9, 7, 2, 8, 7, 5}},
      {3, {6, 15, 2, 4, 2, 13, 6, 0, 15, 6, 3, 12}},
      {6'291'461, {14, 10, 11, 3, 0, 3, 14, 13, 15, 3, 3, 12}}};
  for (const auto& [seed, ways] : known) {
    const auto ecmp = make("ecmp", {}, seed), by_name = make("ecmp", {{"hash", "flow"}}, seed);
    for (std::uint16_t i = 0; i < ways.size(); ++i) {
      const auto frame = packet({.source_port = static_cast<std::uint16_t>(0xc000 + i), .qp = i});
      EXPECT_EQ(ecmp->choose(frame, ways_of(16), View()), ways[i]) << seed << ' ' << i;
      EXPECT_EQ(by_name->choose(frame, ways_of(16), View()), ways[i]);
    }
  }
}

TEST(Ecmp, TheQueuePairsOfOneFlowShareTheWaysAndEachKeepsItsOwn) {
  const auto ecmp = make("ecmp", {{"hash", "qp"}}), by_flow = make("ecmp");
  std::vector<int> found(4), of_ipv6(4);
  const auto one_way = by_flow->choose(packet({.qp = 0x10000}), ways_of(4), View());
  for (std::uint32_t qp = 0; qp < 600; ++qp) {
    const auto number = qp << 14 | 1;
    const auto way = ecmp->choose(packet({.qp = number}), ways_of(4), View());
    ++found.at(way);
    for (const std::uint8_t traffic_class : {8, 0x60}) {
      const auto again = packet({.qp = number, .traffic_class = traffic_class});
      EXPECT_EQ(ecmp->choose(again, ways_of(4), View()), way);
    }
    EXPECT_EQ(by_flow->choose(packet({.qp = number}), ways_of(4), View()), one_way);
    if (qp < 200) ++of_ipv6.at(ecmp->choose(ipv6_packet(qp), ways_of(4), View()));
  }
  for (const auto count : found) expect_share(count, 600, 0.25);
  for (const auto count : of_ipv6) expect_share(count, 200, 0.25);
}

TEST(Ecmp, WhatIsNoRocePacketHasNoQueuePair) {
  for (const std::uint32_t qp : {1, 2, 77}) {
    for (const auto& other : {Fields{.qp = qp, .port = 4790}, Fields{.qp = qp, .fragment = true}})
      EXPECT_EQ(flow_and_queue_pair_of(packet(other)), flow_of(packet(other)));
    EXPECT_NE(flow_and_queue_pair_of(packet({.qp = qp})), flow_of(packet({.qp = qp})));
  }
  // TCP, and truncated frames.
  auto bytes = bytes_of({});
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const auto frame = frame_of({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)});
    EXPECT_EQ(flow_and_queue_pair_of(frame) == flow_of(frame), size < 14 + 20 + 8 + 12) << size;
  }
  bytes[23] = 6;
  EXPECT_EQ(flow_and_queue_pair_of(frame_of(bytes)), flow_of(frame_of(bytes)));
}

// Options make the IP header longer.
TEST(Ecmp, TheQueuePairIsBehindTheWholeIpHeader) {
  auto bytes = bytes_of({.qp = 0x123456});
  const auto plain = flow_and_queue_pair_of(frame_of(bytes));
  bytes[14] = 0x47;
  bytes.insert(bytes.begin() + 34, 8, 1);
  EXPECT_EQ(flow_and_queue_pair_of(frame_of(bytes)), plain);
  EXPECT_EQ(plain[4], 0x123456ull << 40);
}

// --- spray
TEST(Spray, IsRandomUnlessToldAndEven) {
  for (const std::size_t ways : {2, 3, 7, 16}) {
    const auto one = make("spray");
    for (const auto count : counts(*one, ways, 20'000)) expect_share(count, 20'000, 1.0 / static_cast<double>(ways));
  }
}

TEST(Spray, ASeedDecides) {
  const auto sequence = [](std::uint64_t seed) {
    const auto policy = make("spray", {{"order", "random"}}, seed);
    std::vector<std::uint32_t> ways;
    for (int i = 0; i < 50; ++i) ways.push_back(policy->choose(packet(), ways_of(4), View()));
    return ways;
  };
  EXPECT_EQ(sequence(1), sequence(1));
  EXPECT_NE(sequence(1), sequence(2));
}

TEST(Spray, RoundRobinIsEvenToOneFrame) {
  for (const std::size_t ways : {2, 3, 7, 16}) {
    const auto policy = make("spray", {{"order", "round_robin"}});
    std::vector<int> counts(ways);
    for (int i = 0; i < 100; ++i) {
      ++counts.at(policy->choose(packet({.qp = static_cast<std::uint32_t>(i % 5)}), ways_of(ways), View()));
      const auto [least, most] = std::ranges::minmax(counts);
      EXPECT_LE(most - least, 1);
    }
  }
}

TEST(Spray, EachSetOfWaysHasItsTurns) {
  const auto policy = make("spray", {{"order", "round_robin"}});
  std::vector<int> first(3), second(4);
  for (int i = 0; i < 12; ++i) {
    ++first.at(policy->choose(packet(), ways_of(3, 5), View()));
    if (i % 3 == 0) ++second.at(policy->choose(packet(), ways_of(4, 2), View()));
  }
  EXPECT_EQ(first, std::vector<int>(3, 4));
  EXPECT_EQ(second, std::vector<int>(4, 1));
}

TEST(Spray, SwitchesDoNotBeginInStep) {
  std::set<std::uint32_t> first;
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    first.insert(make("spray", {{"order", "round_robin"}}, seed)->choose(packet(), ways_of(4), View()));
  EXPECT_EQ(first.size(), 4u);
}

// --- flowlet
class Flowlets : public testing::Test {
 protected:
  std::uint32_t way_of(const Frame& frame, std::size_t ways = 16) { return policy->choose(frame, ways_of(ways), view); }
  std::unique_ptr<PathChoice> policy = make("flowlet", {{"gap", "20 us"}});
  View view;
};

TEST_F(Flowlets, KeepTheirWayUpToTheGap) {
  const auto frame = packet();
  const auto way = way_of(frame);
  for (int i = 0; i < 200; ++i) {
    view.now += 20_us;
    EXPECT_EQ(way_of(frame), way);
  }
  EXPECT_EQ(policy->changes(), 0u);
}

TEST_F(Flowlets, DrawAWayOnePicosecondBehindTheGap) {
  const auto frame = packet();
  std::vector<int> found(16);
  auto last = way_of(frame);
  Counter changes = 0;
  for (int i = 0; i < 4'000; ++i) {
    view.now += 20_us + 1_ps;
    const auto way = way_of(frame);
    ++found.at(way);
    changes += way != last;
    last = way;
    view.now += 1_us;
    EXPECT_EQ(way_of(frame), way);
  }
  for (const auto count : found) expect_share(count, 4'000, 1.0 / 16);
  EXPECT_EQ(policy->changes(), changes);
  expect_share(static_cast<int>(changes), 4'000, 15.0 / 16);
}

TEST_F(Flowlets, TheGapIsOfEachFlowByItself) {
  const auto frame = packet(), other = packet({.source_port = 0xc001});
  const auto way = way_of(frame);
  std::set<std::uint32_t> of_other;
  for (int i = 0; i < 40; ++i) {
    view.now += 15_us;
    EXPECT_EQ(way_of(frame), way);
    if (i % 2 == 0) of_other.insert(way_of(other));
  }
  EXPECT_GT(of_other.size(), 5u);
}

TEST_F(Flowlets, NewFlowsShareTheWays) {
  std::vector<int> found(4);
  for (std::uint16_t port = 0; port < 2'000; ++port) ++found.at(way_of(packet({.source_port = port}), 4));
  for (const auto count : found) expect_share(count, 2'000, 0.25);
}

// Flows in one table entry are treated as one flow. The chosen way still lies within each flow's own set of ways.
TEST_F(Flowlets, ATableThatIsFullHoldsFlowsTogether) {
  policy = make("flowlet", {{"gap", "20 us"}, {"entries", "1"}});
  const auto way = way_of(packet());
  for (std::uint16_t port = 0; port < 50; ++port) EXPECT_EQ(way_of(packet({.source_port = port})), way);
  for (int i = 0; i < 100; ++i) {
    view.now += 21_us;
    const auto of_many = way_of(packet());
    const auto of_few = way_of(packet({.source_port = 1}), 3);
    EXPECT_LT(of_few, 3u);
    EXPECT_EQ(way_of(packet()), of_many);
    EXPECT_EQ(way_of(packet({.source_port = 1}), 3), of_few);
  }
}

TEST_F(Flowlets, MayTakeTheLessLoadedOfSomeWays) {
  policy = make("flowlet", {{"gap", "20 us"}, {"choices", "4"}});
  view.waiting[9][0] = view.waiting[11][0] = view.waiting[30][0] = 1;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(way_of(packet(), 4), 0u);
    view.now += 21_us;
  }
  // Not within a flowlet.
  const auto way = way_of(packet(), 4);
  view.waiting[4][0] = 1'000;
  EXPECT_EQ(way_of(packet(), 4), way);
  view.now += 21_us;
  EXPECT_NE(way_of(packet(), 4), way);
}

// --- adaptive
TEST(Adaptive, AvoidsALoadedPort) {
  View view;
  view.waiting[9][0] = 1;
  const auto found = counts(*make("adaptive"), 3, 3'000, view);
  EXPECT_EQ(found[1], 0);
  expect_share(found[0], 3'000, 0.5);
}

// Two different ways are drawn out of n: the k-th best is chosen whenever the other drawn way is worse.
TEST(Adaptive, TakesTheBetterOfTwo) {
  View view;
  for (std::uint16_t way = 0; way < 4; ++way) view.waiting[kPorts[way]][0] = 100u * (1 + (way + 1) % 4);
  const auto found = counts(*make("adaptive"), 4, 12'000, view);
  expect_share(found[3], 12'000, 3.0 / 6);
  expect_share(found[0], 12'000, 2.0 / 6);
  expect_share(found[1], 12'000, 1.0 / 6);
  EXPECT_EQ(found[2], 0);
}

TEST(Adaptive, IsEvenWhereTheLoadIs) {
  for (const std::string choices : {"1", "2", "5", "16", "65535"}) {
    const auto adaptive = make("adaptive", {{"choices", choices}});
    for (const auto count : counts(*adaptive, 5, 10'000)) expect_share(count, 10'000, 0.2);
  }
}

TEST(Adaptive, LooksAtAllWaysIfItMay) {
  View view;
  for (auto& port : view.waiting) port[0] = 10;
  view.waiting[11][0] = 9;
  EXPECT_EQ(counts(*make("adaptive", {{"choices", "16"}}), 5, 100, view)[2], 100);
}

TEST(Adaptive, ComparesThePriorityOrThePort) {
  View view;
  view.waiting[4][0] = 500;
  view.waiting[9][3] = 400;
  const auto urgent = packet({.traffic_class = 3 << 5}), other = packet();
  const auto by_priority = make("adaptive"), by_port = make("adaptive", {{"load", "port"}});
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(by_priority->choose(urgent, ways_of(2), view), 0u);
    EXPECT_EQ(by_priority->choose(other, ways_of(2), view), 1u);
    EXPECT_EQ(by_port->choose(urgent, ways_of(2), view), 1u);
  }
}

// With memory the best of all ways is found sooner or later, and kept while it stays the best.
TEST(Adaptive, RemembersTheWayOfTheFrameBefore) {
  View view;
  for (auto& port : view.waiting) port[0] = 10;
  view.waiting[11][0] = 9;
  const auto with = make("adaptive", {{"memory", "true"}}), without = make("adaptive");
  const auto found = counts(*with, 16, 1'000, view);
  EXPECT_GT(found[2], 900);
  expect_share(counts(*without, 16, 1'000, view)[2], 1'000, 2.0 / 16);
  EXPECT_EQ(counts(*with, 16, 50, view)[2], 50);
  // A set of ways to other destinations.
  EXPECT_NE(with->choose(packet(), ways_of(2, 0), view), 2u);
  view.waiting[11][0] = 11;
  EXPECT_EQ(counts(*with, 16, 50, view)[2], 0);
}

// --- Parameters
TEST(Paths, ByNameAndDefault) {
  EXPECT_EQ(std::vector<std::string>(policy_names<PathChoice>().begin(), policy_names<PathChoice>().end()),
            (std::vector<std::string>{"adaptive", "ecmp", "flowlet", "spray"}));
}

TEST(Paths, RefuseWhatIsNoValue) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"path", "rps"},          {"ecmp.hash", "tuple"},      {"spray.order", "least"},    {"flowlet.gap", "20"},
      {"flowlet.gap", "-1 us"}, {"flowlet.gap", "2 s"},      {"flowlet.entries", "0"},    {"flowlet.entries", "1e9"},
      {"flowlet.choices", "0"}, {"adaptive.choices", "0"},   {"adaptive.choices", "two"}, {"adaptive.load", "link"},
      {"adaptive.memory", "2"}, {"flowlet.choices", "70000"}};
  for (const auto& [key, text] : wrong) {
    const auto told = refused(key, text);
    ASSERT_TRUE(told) << key << '=' << text;
    EXPECT_FALSE(told->empty());
    EXPECT_EQ(told->find('\n'), std::string::npos) << *told;
  }
  EXPECT_EQ(refused("flowlet.gap", "0 ns"), std::nullopt);
  EXPECT_EQ(refused("flowlet.entries", "1000"), std::nullopt);
}

}  // namespace
}  // namespace rnicsim::fabric::path_choice_test
