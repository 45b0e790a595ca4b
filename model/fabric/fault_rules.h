// Fault rules: which frames of a cable suffer what. Only the decision, for one direction of one cable; FaultInjector
// carries it out. What a rule must know of a frame beyond its bytes comes from a matcher: no protocol is known here.
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
  std::optional<std::uint8_t> management;  // the message that a management datagram carries
  std::uint32_t checked_from = 0;  // from this byte on, the receiver notices any bit's change
};
// nullopt: a frame that is not of the protocol; rules by QP, opcode, PSN or message leave it alone.
using FrameMatcher = std::function<std::optional<FrameFacts>(const Frame&)>;

class FaultRules {
 public:
  FaultRules() = default;  // a cable that is all right
  // For the frames that host number `host` sends. A rule counts and draws here apart from other hosts, so that what
  // one host suffers does not depend on what another sends. The draws follow from seed, rule's position and host.
  FaultRules(const std::vector<FaultRule>& rules, std::uint64_t seed, std::uint32_t host, FrameMatcher matcher);

  bool empty() const { return states_.empty(); }
  // For each frame once, in order. Every rule counts what it matches, whatever the others do; of the rules that strike
  // a frame, the first acts.
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

// It is a frame of its own then, of bytes; those that shared its body stay as they are.
void flip_bit(Frame& frame, std::uint32_t bit);

}  // namespace rnicsim::fabric
