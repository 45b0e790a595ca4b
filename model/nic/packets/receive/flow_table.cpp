// SPDX-License-Identifier: Apache-2.0
#include "model/nic/packets/receive/flow_table.h"

#include <algorithm>

namespace rnicsim::nic {
namespace {

bool is_for_group(const FrameHeaders& headers) {
  const auto* ethernet = headers.find(FlowHeader::ethernet, false);
  return ethernet != nullptr && ((*ethernet)[0] & std::byte{1}) != std::byte{};
}

bool is_met(const FlowCondition& condition, const FrameHeaders& headers) {
  const auto* fields = headers.find(condition.header, condition.inner);
  if (fields == nullptr) return false;
  for (std::size_t i = 0; i < fields->size(); ++i)
    if ((((*fields)[i] ^ condition.value[i]) & condition.mask[i]) != std::byte{}) return false;
  return true;
}

bool matches(const FlowRule& rule, const FrameHeaders& headers) {
  return std::ranges::all_of(rule.conditions, [&](const auto& condition) { return is_met(condition, headers); });
}

bool asks_all_of(const FlowRule& rule, const FlowRule& other) {
  return std::ranges::all_of(other.conditions, [&rule](const FlowCondition& condition) {
    return std::ranges::find(rule.conditions, condition) != rule.conditions.end();
  });
}

// True if both rules have the same conditions, in any order, with or without duplicates.
bool ask_the_same(const FlowRule& a, const FlowRule& b) { return asks_all_of(a, b) && asks_all_of(b, a); }

// Value bits outside of the mask do not count.
FlowRule masked(FlowRule rule) {
  for (auto& condition : rule.conditions)
    for (std::size_t i = 0; i < condition.value.size(); ++i) condition.value[i] &= condition.mask[i];
  return rule;
}

}  // namespace

FlowTable::Result FlowTable::add(std::uint32_t number, const FlowRule& rule) {
  if (std::ranges::find(rules_, number, &Entry::number) != rules_.end()) return Result::exists;
  if (rules_.size() == limits_.rules) return Result::no_room;
  if (rule.counter && !counters_.contains(*rule.counter)) return Result::no_such;
  const auto later = [&](const Entry& entry) { return entry.rule.priority > rule.priority; };
  rules_.insert(std::ranges::find_if(rules_, later), {number, masked(rule)});
  sniffers_ += rule.kind == FlowKind::sniffer;
  return Result::done;
}

FlowTable::Result FlowTable::remove(std::uint32_t number) {
  const auto found = std::ranges::find(rules_, number, &Entry::number);
  if (found == rules_.end()) return Result::no_such;
  sniffers_ -= found->rule.kind == FlowKind::sniffer;
  rules_.erase(found);
  return Result::done;
}

bool FlowTable::leads_to(Qpn qpn) const {
  return std::ranges::any_of(rules_, [qpn](const Entry& entry) { return entry.rule.destination == qpn; });
}

FlowTable::Result FlowTable::add_counter(std::uint32_t number) {
  if (counters_.contains(number)) return Result::exists;
  if (counters_.size() == limits_.counters) return Result::no_room;
  counters_[number] = {};
  return Result::done;
}

FlowTable::Result FlowTable::remove_counter(std::uint32_t number) {
  if (!counters_.contains(number)) return Result::no_such;
  if (std::ranges::any_of(rules_, [number](const Entry& entry) { return entry.rule.counter == number; }))
    return Result::in_use;
  counters_.erase(number);
  return Result::done;
}

const FlowCount* FlowTable::counter(std::uint32_t number) const {
  const auto found = counters_.find(number);
  return found != counters_.end() ? &found->second : nullptr;
}

bool FlowTable::look_up(const FrameHeaders& headers, std::uint32_t bytes, bool for_sniffers,
                        std::vector<FlowHit>& hits) {
  const auto normal = for_sniffers ? Outcome::none : look_up_normal(headers, bytes, hits);
  const bool takes_default = !for_sniffers && normal != Outcome::taken;
  const bool group = is_for_group(headers);
  bool met = normal != Outcome::none;
  for (const auto& [number, rule] : rules_) {
    const bool by_default = rule.kind == FlowKind::all_default || (rule.kind == FlowKind::multicast_default && group);
    if (rule.kind != FlowKind::sniffer && !(by_default && takes_default)) continue;
    hit(rule, bytes, hits);
    met = true;
  }
  return met;
}

FlowTable::Outcome FlowTable::look_up_normal(const FrameHeaders& headers, std::uint32_t bytes,
                                             std::vector<FlowHit>& hits) {
  auto outcome = Outcome::none;
  const FlowRule* first = nullptr;  // first rule that takes the frame
  for (const auto& [number, rule] : rules_) {
    if (first != nullptr && rule.priority != first->priority) break;
    if (rule.kind != FlowKind::normal || !matches(rule, headers)) continue;
    if (first != nullptr && !ask_the_same(*first, rule)) continue;
    hit(rule, bytes, hits);
    if (first == nullptr && !rule.passes_on) first = &rule;
    outcome = first != nullptr ? Outcome::taken : Outcome::passed_on;
  }
  return outcome;
}

void FlowTable::hit(const FlowRule& rule, std::uint32_t bytes, std::vector<FlowHit>& hits) {
  if (rule.counter) {
    auto& count = counters_[*rule.counter];
    ++count.packets;
    count.bytes += bytes;
  }
  const bool known = std::ranges::find(hits, rule.destination, &FlowHit::destination) != hits.end();
  if (!rule.drops && !known) hits.push_back({rule.destination, rule.tag});
}

void FlowTable::clear() {
  rules_.clear();
  counters_.clear();
  sniffers_ = 0;
}

}  // namespace rnicsim::nic
