// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/time/long_turn.h"

#include <fmt/format.h>

#include <algorithm>

namespace rnicsim::sim {
namespace {

// A thread that waits for a processor gets at least 1/10 of one. A thread with less is blocked by something else, such
// as a disk.
constexpr int kLeastShare = 10;

}  // namespace

std::optional<std::string> LongTurn::complaint(Time waited, const std::function<Facts()>& look) {
  if (waited < next_look_) return std::nullopt;
  next_look_ = waited + kBetweenLooks;
  const Facts facts = look();
  if (!ran_before_) ran_before_ = facts.processor_time - waited;  // the process may have run for the whole time
  const Time ran = facts.processor_time - *ran_before_;
  const Time held_up = facts.is_stopped ? waited : std::max(ran, waited / kLeastShare);
  if (held_up < next_complaint_) return std::nullopt;
  next_complaint_ = held_up + kStuck;
  if (facts.is_stopped) return "is stopped, and continues at SIGCONT (fg or bg in the shell)";
  const bool runs = held_up == ran;
  return fmt::format("has {} for {} s{}", runs ? "run" : "not come back", (runs ? ran : waited).count() / 1'000'000,
                     runs ? " without a call" : "");
}

}  // namespace rnicsim::sim
