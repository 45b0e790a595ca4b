// SPDX-License-Identifier: Apache-2.0
// A fault rule: which frames of a cable it applies to, and the fault.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/base/units.h"

namespace rnicsim::fabric {

using namespace rnicsim::literals;

enum class FaultAction : std::uint8_t { drop, corrupt, duplicate, delay, reorder };

// From `first` to `last`, both included.
struct NumberRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool operator==(const NumberRange&) const = default;
};

struct FaultRule {
  FaultAction action = FaultAction::drop;

  // Filter: a frame matches if all given members match.
  std::optional<std::uint32_t> host;  // number of the sending host
  std::optional<std::uint32_t> qp;    // destination QP
  std::optional<std::bitset<256>> opcodes;
  std::optional<std::bitset<16>> management;  // management messages, by FrameFacts::management
  std::vector<NumberRange> psn;               // the PSN is in one of the ranges; a range with first > last wraps around

  // Selection among matching frames: first by number (counted from 1) in one of the ranges of `nth`, then by
  // probability, then the first `count`.
  std::vector<NumberRange> nth;
  double probability = 1;
  std::optional<std::uint64_t> count;

  Duration delay;            // of the delayed frame, or of the duplicate
  std::uint32_t behind = 1;  // reorder: number of later frames that pass first
  Duration limit = 10_us;    // reorder: longest time to wait for these frames
};

// Decision for one frame.
struct Fault {
  std::uint32_t position = 0;  // position of the rule in the list, from 0
  FaultAction action = FaultAction::drop;
  Duration delay;
  std::uint32_t behind = 1;
  Duration limit;
  std::uint32_t bit = 0;  // corrupt: bit to flip, counted from the frame's first bit
};

}  // namespace rnicsim::fabric
