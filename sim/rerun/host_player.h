// SPDX-License-Identifier: Apache-2.0
// Replays the steps of one host's software in order: at their recorded times, or each as long after the output that it
// waited for as in the recorded run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "model/base/agenda.h"
#include "sim/rerun/device_outputs.h"
#include "sim/rerun/recorded_steps.h"

namespace rnicsim::sim::rerun {

enum class Pace : std::uint8_t { recorded, as_possible };

class HostPlayer {
 public:
  // `play` executes a step. `steps` must outlive the player.
  HostPlayer(const RecordedSteps& steps, Pace pace, std::function<void(const Step&)> play);

  // Call before the simulation starts: add() the host's steps in order, by their index in RecordedSteps, then start().
  void add(std::uint32_t step) { own_.push_back(step); }
  void start();

  DeviceOutputs& outputs() { return outputs_; }
  bool has_ended() const { return next_ == own_.size(); }
  // True: the next step waits for a device.
  bool waits() const { return waits_; }
  // The next step that is no store: the step that waits. There must be one.
  const Step& next_request() const;
  // Time of the next step; nullopt: the step waits, or no step is left.
  std::optional<Duration> next_due() const { return has_ended() || waits_ ? std::nullopt : due(); }
  Duration played() const { return played_; }   // time of the last step
  Duration requested() const { return base_; }  // time of the last step that is not a store

 private:
  const Step& next() const { return steps_.steps()[own_[next_]]; }
  std::optional<Duration> due() const;
  void go_on();

  const RecordedSteps& steps_;
  const Pace pace_;
  const std::function<void(const Step&)> play_;
  std::vector<std::uint32_t> own_;
  std::size_t next_ = 0;
  Duration played_;           // time of the last step
  Duration base_, recorded_;  // times of the last step that is no store, in this run and in the recorded one
  bool waits_ = false;
  DeviceOutputs outputs_;
  Alarm due_{[this] { go_on(); }};
};

}  // namespace rnicsim::sim::rerun
