// SPDX-License-Identifier: Apache-2.0
#include "sim/rerun/host_player.h"

#include <algorithm>
#include <utility>

namespace rnicsim::sim::rerun {

HostPlayer::HostPlayer(const RecordedSteps& steps, Pace pace, std::function<void(const Step&)> play)
    : steps_(steps), pace_(pace), play_(std::move(play)) {
  outputs_.on_expected = [this] {
    if (waits_) due_.arm_by(now());
  };
}

void HostPlayer::start() {
  if (pace_ == Pace::as_possible)
    for (const auto step : own_)
      if (const auto* output = steps_.awaited_by(steps_.steps()[step])) outputs_.expect(*output);
  if (!has_ended()) due_.arm(*due());
}

// nullopt: the output that the step waits for has not happened.
std::optional<Duration> HostPlayer::due() const {
  if (pace_ == Pace::recorded) return next().at;
  // A store before a request is due with the request; another store after the step before it.
  const Step& step = next().precedes_request ? next_request() : next();
  const auto* output = steps_.awaited_by(step);
  if (output == nullptr) return std::max(base_ + (step.at - recorded_), played_);
  const auto came = outputs_.when(*output);
  if (!came) return std::nullopt;
  return std::max(*came + (step.at - output->at), played_);
}

const Step& HostPlayer::next_request() const {
  std::size_t place = next_;
  while (steps_.steps()[own_[place]].kind == EventKind::memory && place + 1 < own_.size()) ++place;
  return steps_.steps()[own_[place]];
}

void HostPlayer::go_on() {
  waits_ = false;
  while (!has_ended()) {
    const auto at = due();
    if (!at) {
      waits_ = true;
      return;
    }
    if (*at > now()) return due_.arm(*at);
    const Step& step = next();
    ++next_;
    played_ = now();
    if (step.kind != EventKind::memory) {
      base_ = now();
      recorded_ = step.at;
    }
    play_(step);
  }
}

}  // namespace rnicsim::sim::rerun
