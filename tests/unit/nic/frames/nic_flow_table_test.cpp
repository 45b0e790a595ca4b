// SPDX-License-Identifier: Apache-2.0
// Receivers that flow rules select for a frame, against a reference that checks every rule.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "model/nic/packets/receive/flow_table.h"
#include "tests/unit/nic/frames/raw_frames.h"

namespace rnicsim::nic {
namespace {

using namespace test;
using Result = FlowTable::Result;

constexpr FlowLimits kLimits{.rules = 64, .counters = 4};
constexpr std::size_t kDestination = 0, kSource = 2;  // offsets in UDP's fields

// Condition on a UDP port: the bits of `mask` equal those of `value`.
FlowCondition port(std::size_t field, unsigned value, unsigned mask = 0xffff) {
  FlowCondition condition{.header = FlowHeader::udp};
  for (std::size_t i = 0; i < 2; ++i) {
    condition.value[field + i] = std::byte(value >> (8 - 8 * i) & 0xff);
    condition.mask[field + i] = std::byte(mask >> (8 - 8 * i) & 0xff);
  }
  return condition;
}
FrameBytes frame(unsigned source, unsigned destination, bool group = false) {
  return ethernet(0x0800, ipv4(17, 1, 2, udp(source, destination)), group ? 0x03 : 0x02);
}
FlowRule rule(std::uint32_t to, std::vector<FlowCondition> conditions, std::uint16_t priority = 0) {
  return {.kind = FlowKind::normal, .priority = priority, .conditions = std::move(conditions), .destination = {to}};
}

class Flows : public ::testing::Test {
 protected:
  void add(const FlowRule& rule) { ASSERT_EQ(table.add(++number, rule), Result::done); }
  std::vector<FlowHit> hits(const FrameBytes& frame, bool for_sniffers = false) {
    std::vector<FlowHit> all;
    taken = table.look_up(FrameHeaders(frame), static_cast<std::uint32_t>(frame.size()), for_sniffers, all);
    return all;
  }
  std::vector<std::uint32_t> who(const FrameBytes& frame, bool for_sniffers = false) {
    std::vector<std::uint32_t> all;
    for (const auto& hit : hits(frame, for_sniffers)) all.push_back(hit.destination.value);
    return all;
  }

  FlowTable table{kLimits};
  std::uint32_t number = 0;
  bool taken = false;
};
using Who = std::vector<std::uint32_t>;

TEST_F(Flows, TheLowestPriorityIsFirstThenTheOldest) {
  add(rule(1, {port(kDestination, 80)}, 5));
  add(rule(2, {port(kSource, 7)}, 3));
  add(rule(3, {port(kDestination, 80), port(kSource, 7)}, 3));
  EXPECT_EQ(who(frame(7, 80)), Who{2});
  EXPECT_EQ(who(frame(8, 80)), Who{1});
  EXPECT_EQ(who(frame(8, 81)), Who{});
  EXPECT_FALSE(taken);
}

TEST_F(Flows, RulesThatAskForTheSameShare) {
  add(rule(1, {port(kDestination, 80), port(kSource, 7)}));
  add(rule(2, {port(kSource, 7), port(kDestination, 80)}));
  add(rule(3, {port(kDestination, 80)}));
  add(rule(1, {port(kDestination, 80), port(kSource, 7)}));
  EXPECT_EQ(who(frame(7, 80)), (Who{1, 2}));
}

TEST_F(Flows, OfAnotherPriorityTheyDoNot) {
  add(rule(1, {port(kDestination, 80)}, 1));
  add(rule(2, {port(kDestination, 80)}, 2));
  EXPECT_EQ(who(frame(7, 80)), Who{1});
}

TEST_F(Flows, ToAskTwiceIsToAskOnce) {
  add(rule(1, {port(kDestination, 80), port(kDestination, 80)}));
  add(rule(2, {port(kDestination, 80)}));
  add(rule(3, {port(kDestination, 80), port(kSource, 7)}));
  EXPECT_EQ(who(frame(7, 80)), (Who{1, 2}));
}

TEST_F(Flows, WhatTheMaskLeavesOutIsNotAskedFor) {
  add(rule(1, {port(kDestination, 0x1250, 0x00ff)}));
  add(rule(2, {port(kDestination, 0x3450, 0x00ff)}));
  add(rule(3, {port(kDestination, 0x1250, 0x01ff)}));
  EXPECT_EQ(who(frame(7, 0x5650)), (Who{1, 2}));
  EXPECT_EQ(who(frame(7, 0x5651)), Who{});
}

TEST_F(Flows, TheFirstRuleOfADestinationGivesTheTag) {
  const auto tagged = [](FlowRule rule, std::uint32_t tag) {
    rule.tag = tag;
    return rule;
  };
  add(tagged(rule(1, {port(kDestination, 80)}), 11));
  add(rule(2, {port(kDestination, 80)}));
  add(tagged(rule(2, {port(kDestination, 80)}), 12));
  add(tagged({.kind = FlowKind::all_default, .destination = {3}}, 0));
  add(tagged({.kind = FlowKind::sniffer, .destination = {1}}, 14));
  EXPECT_EQ(hits(frame(7, 80)), (std::vector<FlowHit>{{{1}, 11}, {{2}, std::nullopt}}));
  EXPECT_EQ(hits(frame(7, 81)), (std::vector<FlowHit>{{{3}, 0}, {{1}, 14}}));
}

TEST_F(Flows, DefaultsTakeWhatIsLeft) {
  add({.kind = FlowKind::all_default, .destination = {1}});
  add({.kind = FlowKind::multicast_default, .destination = {2}});
  add(rule(3, {port(kDestination, 80)}));
  EXPECT_EQ(who(frame(7, 80, true)), Who{3});
  EXPECT_EQ(who(frame(7, 81)), Who{1});
  EXPECT_EQ(who(frame(7, 81, true)), (Who{1, 2}));
  EXPECT_TRUE(taken);
  EXPECT_EQ(who(frame(7, 81, true), true), Who{}) << "of sniffers alone";
  EXPECT_FALSE(taken);
  EXPECT_EQ(table.remove(1), Result::done);
  EXPECT_EQ(who(frame(7, 81)), Who{});
  EXPECT_FALSE(taken);
}

TEST_F(Flows, SniffersGetAll) {
  add({.kind = FlowKind::sniffer, .destination = {9}});
  add(rule(3, {port(kDestination, 80)}));
  EXPECT_TRUE(table.sniffs());
  EXPECT_EQ(who(frame(7, 80)), (Who{3, 9}));
  EXPECT_TRUE(taken);
  EXPECT_EQ(who(frame(7, 81)), Who{9});
  EXPECT_TRUE(taken);
  EXPECT_EQ(who(frame(7, 80), true), Who{9});
  EXPECT_TRUE(taken);
  EXPECT_EQ(table.remove(1), Result::done);
  EXPECT_FALSE(table.sniffs());
  EXPECT_EQ(who(frame(7, 81), true), Who{});
  EXPECT_FALSE(taken);
}

TEST_F(Flows, ADropTakesAndGivesNobody) {
  auto drop = rule(1, {port(kDestination, 80)});
  drop.drops = true;
  add(drop);
  add(rule(2, {}, 9));
  EXPECT_EQ(who(frame(7, 80)), Who{});
  EXPECT_TRUE(taken);
  EXPECT_EQ(who(frame(7, 81)), Who{2});
}

TEST_F(Flows, ACopyIsPassedOn) {
  auto copy = rule(1, {port(kDestination, 80)});
  copy.passes_on = true;
  add(copy);
  add(rule(2, {port(kSource, 7)}, 4));
  EXPECT_EQ(who(frame(7, 80)), (Who{1, 2}));
  EXPECT_EQ(who(frame(8, 80)), Who{1});
  EXPECT_TRUE(taken);
  add({.kind = FlowKind::all_default, .destination = {5}});
  EXPECT_EQ(who(frame(8, 80)), (Who{1, 5}));
}

TEST_F(Flows, CountersCountWhatTheirRulesHit) {
  ASSERT_EQ(table.add_counter(7), Result::done);
  EXPECT_EQ(table.add_counter(7), Result::exists);
  auto counted = rule(1, {port(kDestination, 80)});
  counted.counter = 7;
  add(counted);
  const auto one = frame(7, 80);
  who(one);
  who(one);
  who(frame(7, 81));
  EXPECT_EQ(table.counter(7)->packets, 2u);
  EXPECT_EQ(table.counter(7)->bytes, 2 * one.size());
  EXPECT_EQ(table.remove_counter(7), Result::in_use);
  EXPECT_EQ(table.remove(1), Result::done);
  EXPECT_EQ(table.remove_counter(7), Result::done);
  EXPECT_EQ(table.counter(7), nullptr);
  EXPECT_EQ(table.remove_counter(7), Result::no_such);
}

TEST_F(Flows, Limits) {
  FlowTable small({.rules = 1, .counters = 1});
  auto counted = rule(1, {});
  counted.counter = 3;
  EXPECT_EQ(small.add(1, counted), Result::no_such);
  EXPECT_TRUE(small.takes_nothing());
  EXPECT_EQ(small.add(1, rule(1, {})), Result::done);
  EXPECT_EQ(small.add(1, rule(1, {})), Result::exists);
  EXPECT_EQ(small.add(2, rule(1, {})), Result::no_room);
  EXPECT_TRUE(small.leads_to({1}));
  EXPECT_FALSE(small.leads_to({2}));
  EXPECT_EQ(small.remove(2), Result::no_such);
  EXPECT_EQ(small.add_counter(1), Result::done);
  EXPECT_EQ(small.add_counter(2), Result::no_room);
}

TEST_F(Flows, ClearLeavesNothing) {
  ASSERT_EQ(table.add_counter(7), Result::done);
  add({.kind = FlowKind::sniffer, .counter = 7, .destination = {9}});
  add({.kind = FlowKind::all_default, .destination = {1}});
  table.clear();
  EXPECT_TRUE(table.takes_nothing());
  EXPECT_FALSE(table.sniffs());
  EXPECT_FALSE(table.leads_to({9}));
  EXPECT_EQ(table.counter(7), nullptr);
  EXPECT_EQ(who(frame(7, 80)), Who{});
  EXPECT_EQ(table.add_counter(7), Result::done);
  EXPECT_EQ(table.counter(7)->packets, 0u);
  EXPECT_EQ(table.add(1, rule(3, {})), Result::done);
  EXPECT_EQ(who(frame(7, 80)), Who{3});
}

// --- The reference: rules in the order of creation.
struct Made {
  std::uint32_t number;
  FlowRule rule;
};

bool fits(const FlowRule& rule, unsigned source, unsigned destination) {
  for (const auto& condition : rule.conditions)
    for (const auto& [field, value] : {std::pair(kSource, source), std::pair(kDestination, destination)}) {
      const auto at = [first = field](const FlowFields& fields) {
        return std::to_integer<unsigned>(fields[first]) << 8 | std::to_integer<unsigned>(fields[first + 1]);
      };
      if ((at(condition.value) & at(condition.mask)) != (value & at(condition.mask))) return false;
    }
  return true;
}

std::set<std::pair<FlowFields, FlowFields>> asked(const FlowRule& rule) {
  std::set<std::pair<FlowFields, FlowFields>> all;
  for (auto [header, inner, value, mask] : rule.conditions) {
    std::ranges::transform(value, mask, value.begin(), std::bit_and<>());
    all.emplace(value, mask);
  }
  return all;
}

std::set<std::uint32_t> reference(const std::vector<Made>& rules, unsigned source, unsigned destination, bool group) {
  std::set<std::uint32_t> got;
  const auto give = [&got](const FlowRule& rule) {
    if (!rule.drops) got.insert(rule.destination.value);
  };
  const FlowRule* taker = nullptr;
  std::size_t place = 0;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const auto& rule = rules[i].rule;
    if (rule.kind != FlowKind::normal || rule.passes_on || !fits(rule, source, destination)) continue;
    if (taker == nullptr || rule.priority < taker->priority) {
      taker = &rule;
      place = i;
    }
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const auto& rule = rules[i].rule;
    if (rule.kind == FlowKind::sniffer) give(rule);
    if (rule.kind == FlowKind::normal && fits(rule, source, destination)) {
      const bool first =
          taker == nullptr || rule.priority < taker->priority || (rule.priority == taker->priority && i < place);
      const bool shares = taker != nullptr && rule.priority == taker->priority && asked(rule) == asked(*taker);
      if ((rule.passes_on && first) || shares) give(rule);
    }
    const bool by_default = rule.kind == FlowKind::all_default || (rule.kind == FlowKind::multicast_default && group);
    if (taker == nullptr && by_default) give(rule);
  }
  return got;
}

FlowRule any_rule() {
  const auto below = [](unsigned most) { return *rc::gen::inRange(0u, most); };
  FlowRule rule;
  rule.kind = below(4) == 0 ? FlowKind(1 + below(3)) : FlowKind::normal;
  rule.destination = {below(6)};
  if (rule.kind != FlowKind::normal) return rule;
  rule.priority = static_cast<std::uint16_t>(below(3));
  rule.drops = below(5) == 0;
  rule.passes_on = below(5) == 0;
  for (auto count = below(3); count > 0; --count)
    rule.conditions.push_back(
        port(below(2) == 0 ? kSource : kDestination, below(4), below(2) == 0 ? 0xffff : below(4)));
  if (!rule.conditions.empty() && below(4) == 0) rule.conditions.push_back(FlowCondition(rule.conditions.front()));
  return rule;
}

RC_GTEST_PROP(FlowTableProperty, EachFrameGoesWhereTheReferenceSays, ()) {
  FlowTable table(kLimits);
  std::vector<Made> rules;
  std::uint32_t number = 0;
  for (int step = 0; step < 60; ++step) {
    const auto dice = *rc::gen::inRange(0, 4);
    if (dice == 0 && !rules.empty()) {
      const auto which = *rc::gen::inRange<std::size_t>(0, rules.size());
      RC_ASSERT(table.remove(rules[which].number) == Result::done);
      rules.erase(rules.begin() + static_cast<std::ptrdiff_t>(which));
    } else if (dice == 1) {
      rules.push_back({++number, any_rule()});
      RC_ASSERT(table.add(number, rules.back().rule) == Result::done);
    } else {
      const auto source = *rc::gen::inRange(0u, 4u), destination = *rc::gen::inRange(0u, 4u);
      const bool group = *rc::gen::inRange(0, 2) == 1;
      std::vector<FlowHit> hits;
      const bool taken = table.look_up(FrameHeaders(frame(source, destination, group)), 64, false, hits);
      RC_ASSERT(taken || hits.empty());
      std::set<std::uint32_t> got;
      for (const auto& hit : hits) RC_ASSERT(got.insert(hit.destination.value).second);
      RC_ASSERT(got == reference(rules, source, destination, group));
    }
  }
}

}  // namespace
}  // namespace rnicsim::nic
