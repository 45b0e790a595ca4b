// SPDX-License-Identifier: Apache-2.0
// Decides about faults of frames in one direction of a cable; FaultInjector executes the decisions. Protocol fields
// come from a matcher, so the fabric knows no protocol.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "model/base/frame.h"
#include "model/fabric/fault_rule.h"

namespace rnicsim::fabric {

struct FrameFacts {
  std::uint8_t opcode = 0;
  std::uint32_t qp = 0;
  std::uint32_t psn = 0;
  std::optional<std::uint8_t> management;  // number of the message in a management datagram
  std::uint32_t checked_from = 0;          // first byte from which the receiver detects a change of any bit
};
// nullopt: not a frame of the protocol; rules by QP, opcode, PSN or message do not match it.
using FrameMatcher = std::function<std::optional<FrameFacts>(const Frame&)>;

class FaultRules {
 public:
  FaultRules() = default;  // no faults
  // Rules for frames sent by host number `host`. Each host has its own counts and random numbers, so faults of one host
  // do not depend on the traffic of others. The random numbers follow from the seed, the rule's position and the host.
  FaultRules(const std::vector<FaultRule>& rules, std::uint64_t seed, std::uint32_t host, FrameMatcher matcher);

  bool empty() const { return states_.empty(); }
  // Call once for each frame, in order. Each rule counts its matches independently of other rules; if several rules
  // select a frame, the first one acts.
  std::optional<Fault> decide(const Frame& frame);

 private:
  struct State {
    FaultRule rule;
    std::uint32_t position;
    std::mt19937_64 generator;
    std::uint64_t matches = 0;
    std::uint64_t strikes = 0;
  };
  static bool strikes(State& state);
  static Fault fault_of(State& state, const Frame& frame, const std::optional<FrameFacts>& facts);

  std::vector<State> states_;
  FrameMatcher matcher_;
  bool needs_facts_ = false;
};

// Flips a bit in a private copy of the frame's bytes; other handles of the frame stay unchanged.
void flip_bit(Frame& frame, std::uint32_t bit);

}  // namespace rnicsim::fabric
