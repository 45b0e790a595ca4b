// Fault rules: which frames of a cable suffer what. Only the decision, for one direction of one cable; FaultInjector
// carries it out. What a rule must know of a frame beyond its bytes comes from a matcher: no protocol is known here.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "model/base/frame.h"
#include "model/base/units.h"

namespace rnicsim::fabric {

using namespace rnicsim::literals;

enum class FaultAction : std::uint8_t { drop, corrupt, duplicate, delay, reorder };

// From `first` to `last`, both counted in.
struct NumberRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool operator==(const NumberRange&) const = default;
};

struct FaultRule {
  FaultAction action = FaultAction::drop;

  // Which frames: those to which all that is given applies.
  std::optional<std::uint32_t> host;  // the number of the host that sends
  std::optional<std::uint32_t> qp;    // destination
  std::optional<std::bitset<256>> opcodes;
  std::optional<std::bitset<16>> management;  // messages, by the matcher's numbers
  std::vector<NumberRange> psn;  // in one of them; from a larger to a smaller number it wraps

  // Which of these: the ones whose number, counted from 1, is in one of the ranges; of them each with this probability;
  // of them the first `count`.
  std::vector<NumberRange> nth;
  double probability = 1;
  std::optional<std::uint64_t> count;

  Duration delay;            // delay: of the frame; duplicate: of the copy
  std::uint32_t behind = 1;  // reorder: so many later frames go first,
  Duration limit = 10_us;    // if they come before this time is up
};

struct FrameFacts {
  std::uint8_t opcode = 0;
  std::uint32_t qp = 0;
  std::uint32_t psn = 0;
  std::optional<std::uint8_t> management;  // the message that a management datagram carries
  std::uint32_t checked_from = 0;  // from this byte on, the receiver notices any bit's change
};
// nullopt: a frame that is not of the protocol; rules by QP, opcode, PSN or message leave it alone.
using FrameMatcher = std::function<std::optional<FrameFacts>(const Frame&)>;

// What becomes of a frame.
struct Fault {
  std::uint32_t position = 0;  // of the rule, from 0
  FaultAction action = FaultAction::drop;
  Duration delay;
  std::uint32_t behind = 1;
  Duration limit;
  std::uint32_t bit = 0;  // corrupt: which is flipped, counted from the frame's first
};

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
