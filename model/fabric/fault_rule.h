// A fault rule: which frames of a cable it strikes, and what becomes of them.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <vector>

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

// What becomes of a frame.
struct Fault {
  std::uint32_t position = 0;  // of the rule, from 0
  FaultAction action = FaultAction::drop;
  Duration delay;
  std::uint32_t behind = 1;
  Duration limit;
  std::uint32_t bit = 0;  // corrupt: which is flipped, counted from the frame's first
};

}  // namespace rnicsim::fabric
