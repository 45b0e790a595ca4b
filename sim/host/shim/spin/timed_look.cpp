// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/spin/timed_look.h"

#include <algorithm>
#include <array>

#include "sim/host/shim/session.h"
#include "sim/host/shim/spin/loop_marks.h"
#include "sim/host/time/turn.h"

namespace rnicsim::clock {

namespace {

using abi::ThreadSlot;

struct LookOfThread {
  std::uint64_t began = 0, ended = 0;  // picoseconds
  std::uint64_t activity = ~0ull;      // activity() after the look
  std::uint32_t turns = 0;             // looks in a row that took a turn
  bool in_vain = false;
};
constinit thread_local LookOfThread last;

std::array<LookFunction, 16> functions{};

// An address to which looking functions return. To follow a thread from there costs microseconds of real time, as some
// turns do. So a loop is followed when it has taken enough turns, and after each failure only later again. That makes
// no difference to what the program sees.
struct Site {
  std::uintptr_t place = 0;
  int steps = 0;  // steps of a proved round; 0: none yet
  int looks = 8;  // most looks to follow
  std::uint32_t failures = 0;
  std::uint32_t turns_to_skip = 0;
};
std::array<Site, 64> sites{};

Site* site_at(std::uintptr_t place) {
  const auto found = std::ranges::find(sites, place, &Site::place);
  if (found != sites.end()) return &*found;
  const auto free = std::ranges::find(sites, std::uintptr_t{0}, &Site::place);
  if (free == sites.end()) return nullptr;
  *free = {.place = place};
  return &*free;
}

bool is_worth_following(Site& site) {
  constexpr std::uint32_t kTurnsOfUnknown = 3;
  constexpr int kStepsPerTurn = 30;  // steps that cost as much real time as a turn
  if (site.turns_to_skip != 0) {
    --site.turns_to_skip;
    return false;
  }
  const auto wanted = site.steps == 0 ? kTurnsOfUnknown : 1 + std::uint32_t(site.steps / kStepsPerTurn);
  return last.turns >= wanted;
}

void follow_from(const void* place) {
  if (looks_while_followed || tool() != Tool::none || follows_no_loops()) return;
  Site* site = site_at(reinterpret_cast<std::uintptr_t>(place));
  if (site == nullptr || !is_worth_following(*site)) return;
  if (LoopMark* mark = LoopMark::make(site->place, 0)) mark->set();
}

bool does_nothing_else() { return last.activity == activity(); }

}  // namespace

void begin_timed_look(ThreadSlot& slot, abi::CpuCost cost) {
  if (!does_nothing_else()) last.turns = 0;
  last.began = slot.now;
  charge_ahead(slot, cost);  // the look itself lets the world catch up
  last.ended = slot.now;
  last.in_vain = false;
}

void timed_look(ThreadSlot& slot, const void* site) {
  if (slot.now >= slot.looks_until) {
    ++last.turns;
    follow_from(site);
    call(slot, abi::Call::look, {0});
  }
  last.activity = activity();
  last.in_vain = true;
}

void end_timed_look(ThreadSlot& slot, bool found) {
  if (!found) return;
  last.in_vain = false;
  if (slot.ring_visible > last.began && slot.ring_visible < last.ended) slot.now -= last.ended - slot.ring_visible;
}

void end_quiet_time(ThreadSlot& slot) {
  const std::uint64_t unseen = slot.now + session()->header().cost[std::size_t(abi::CpuCost::detect)];
  slot.looks_until = std::min(slot.looks_until, unseen);
  slot.run_until = std::min(slot.run_until, unseen);
}

void declare_look(const void* function, long nothing) {
  for (LookFunction& each : functions) {
    if (each.function != nullptr && each.function != function) continue;
    each = {function, nothing};
    return;
  }
}

const LookFunction* look_function_at(std::uintptr_t place) {
  for (const LookFunction& each : functions) {
    if (each.function == nullptr) return nullptr;
    if (reinterpret_cast<std::uintptr_t>(each.function) == place) return &each;
  }
  return nullptr;
}

bool has_just_looked_in_vain() { return last.in_vain && does_nothing_else(); }

int most_looks_from(std::uintptr_t place) {
  const Site* site = site_at(place);
  return site != nullptr ? site->looks : 0;
}

// A loop over many queues comes round after more looks than were followed: more are followed the next time.
void note_proof(std::uintptr_t place, int steps, int looks) {
  constexpr std::uint32_t kFirstSkip = 8, kMostDoublings = 9;
  Site* site = site_at(place);
  if (site == nullptr) return;
  if (steps != 0) {
    *site = {.place = place, .steps = steps, .looks = std::max(site->looks, 2 * looks)};
    return;
  }
  site->looks = std::min<int>(2 * site->looks, abi::kMostLoopLooks);
  site->failures = std::min(site->failures + 1, kMostDoublings);
  site->turns_to_skip = kFirstSkip << site->failures;
}

}  // namespace rnicsim::clock
