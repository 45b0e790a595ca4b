// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/fault_rules.h"

#include <algorithm>
#include <span>

#include "model/base/draw.h"

namespace rnicsim::fabric {
namespace {

constexpr std::uint64_t kPsnMask = 0xffffff;
constexpr std::uint32_t kBitsPerByte = 8;

bool by_facts(const FaultRule& rule) { return rule.qp || rule.opcodes || rule.management || !rule.psn.empty(); }

bool matches(const FaultRule& rule, const std::optional<FrameFacts>& facts) {
  if (!by_facts(rule)) return true;
  if (!facts || (rule.qp && *rule.qp != facts->qp) || (rule.opcodes && !rule.opcodes->test(facts->opcode)))
    return false;
  if (rule.management && (!facts->management || !rule.management->test(*facts->management))) return false;
  const auto holds = [&](const NumberRange& range) {
    return ((facts->psn - range.first) & kPsnMask) <= ((range.last - range.first) & kPsnMask);
  };
  return rule.psn.empty() || std::ranges::any_of(rule.psn, holds);
}

void flip(std::span<std::byte> part, std::uint32_t bit) {
  part[bit / kBitsPerByte] ^= std::byte(1u << bit % kBitsPerByte);
}

}  // namespace

FaultRules::FaultRules(const std::vector<FaultRule>& rules, std::uint64_t seed, std::uint32_t host,
                       FrameMatcher matcher)
    : matcher_(std::move(matcher)) {
  for (std::uint32_t position = 0; position < rules.size(); ++position) {
    const auto& rule = rules[position];
    if (rule.host && *rule.host != host) continue;
    std::seed_seq seeds{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32), position, host};
    states_.push_back({rule, position, std::mt19937_64(seeds)});
    needs_facts_ |= by_facts(rule) || rule.action == FaultAction::corrupt;
  }
}

std::optional<Fault> FaultRules::decide(const Frame& frame) {
  std::optional<FrameFacts> facts;
  if (needs_facts_) facts = matcher_(frame);
  std::optional<Fault> first;
  for (auto& state : states_) {
    if (!matches(state.rule, facts) || !strikes(state)) continue;
    const auto fault = fault_of(state, frame, facts);
    if (!first) first = fault;
  }
  return first;
}

bool FaultRules::strikes(State& state) {
  const auto number = ++state.matches;
  const auto holds = [&](const NumberRange& range) { return number >= range.first && number <= range.last; };
  if (!state.rule.nth.empty() && std::ranges::none_of(state.rule.nth, holds)) return false;
  if (!draw(state.generator, state.rule.probability)) return false;
  if (state.rule.count && state.strikes == *state.rule.count) return false;
  ++state.strikes;
  return true;
}

Fault FaultRules::fault_of(State& state, const Frame& frame, const std::optional<FrameFacts>& facts) {
  const auto& rule = state.rule;
  Fault fault{state.position, rule.action, rule.delay, rule.behind, rule.limit, 0};
  if (rule.action == FaultAction::corrupt) {
    const std::uint32_t from = facts ? facts->checked_from : 0;
    // Leave out telemetry: only the FCS protects it, and a wrong FCS would lose the whole frame.
    const auto behind = frame.telemetry() != nullptr ? frame.telemetry()->size() : 0;
    const auto bits = static_cast<std::uint32_t>(frame.size() - behind - from) * kBitsPerByte;
    fault.bit = from * kBitsPerByte + static_cast<std::uint32_t>(draw_below(state.generator, bits));
  }
  return fault;
}

void flip_bit(Frame& frame, std::uint32_t bit) {
  auto header = Payload::copy_of(frame.header_span());
  auto payload = frame.payload();
  std::vector<std::byte> trailer(frame.trailer_span().begin(), frame.trailer_span().end());
  const std::uint32_t header_bits = header.size() * kBitsPerByte;
  const std::uint32_t payload_bits = payload.size() * kBitsPerByte;
  if (bit < header_bits) {
    flip(header.writable(), bit);
  } else if (bit < header_bits + payload_bits) {
    payload = Payload::copy_of(payload.bytes());
    flip(payload.writable(), bit - header_bits);
  } else {
    flip(trailer, bit - header_bits - payload_bits);
  }
  frame = Frame::of(std::move(header), std::move(payload), trailer, frame.id(), frame.telemetry());
}

}  // namespace rnicsim::fabric
