// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/pause_watchdog.h"

#include <algorithm>

#include "model/base/kernel.h"

namespace rnicsim::fabric {

PauseWatchdog::PauseWatchdog(const PauseWatchdogParams& params, std::size_t ports)
    : params_(params),
      action_(static_cast<Action>(std::ranges::find(PauseWatchdogParams::kActionWords, params.action) -
                                  std::begin(PauseWatchdogParams::kActionWords))) {
  if (watches()) states_.resize(ports);
}

void PauseWatchdog::paused(Queue queue, Duration until) {
  if (!watches()) return;
  auto& state = of(queue);
  if (now() > state.until) state.since = now();
  const bool earlier = until < state.until;
  state.until = until;
  if (state.in_storm && earlier)
    look_at(queue, state, until + params_.restoration_time);
  else if (until > now() && state.look == 0)
    look_at(queue, state, now() + params_.detection_time);
}

void PauseWatchdog::left(Queue queue) {
  if (watches()) of(queue).last_left = now();
}

void PauseWatchdog::look_at(Queue queue, State& state, Duration when) {
  state.look = ++looks_made_;
  looks_.push(when, {queue, state.look});
}

void PauseWatchdog::look_due() {
  Look due;
  while (looks_.pop_due(due)) {
    auto& state = of(due.queue);
    if (state.look != due.number) continue;
    state.look = 0;
    look(due.queue, state);
  }
}

void PauseWatchdog::look(Queue queue, State& state) {
  if (state.in_storm) {
    const auto over = state.until + params_.restoration_time;
    if (over > now()) return look_at(queue, state, over);
    state.in_storm = false;
    storms_[state.storm].restored = now();
    return storm_ended(queue);
  }
  if (state.until <= now()) return;
  const auto waits = waits_since(queue);
  const auto since = std::max({state.since, state.last_left, waits.value_or(now())});
  if (since + params_.detection_time > now()) return look_at(queue, state, since + params_.detection_time);
  state.in_storm = true;
  state.storm = storms_.size();
  storms_.push_back({queue.port, queue.priority, since, now(), {}});
  look_at(queue, state, state.until + params_.restoration_time);
  storm_began(queue);
}

}  // namespace rnicsim::fabric
