// The steps of one host's software, one after another: at their recorded times, or each so long after what it waited
// for as in the recorded run.
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
  // `play` does a step. `steps` stays.
  HostPlayer(const RecordedSteps& steps, Pace pace, std::function<void(const Step&)> play);

  // Before the simulation begins: the steps in their order, by their places in RecordedSteps, and then start().
  void add(std::uint32_t step) { own_.push_back(step); }
  void start();

  DeviceOutputs& outputs() { return outputs_; }
  bool has_ended() const { return next_ == own_.size(); }
  // Waits for a device.
  bool waits() const { return waits_; }
  // The next step that is no store: the one that waits. To be asked only while there is one.
  const Step& next_request() const;
  // When the next step is due; nullopt: it waits, or there is none.
  std::optional<Duration> next_due() const { return has_ended() || waits_ ? std::nullopt : due(); }
  Duration played() const { return played_; }    // the last step
  Duration requested() const { return base_; }   // the last step that is no store

 private:
  const Step& next() const { return steps_.steps()[own_[next_]]; }
  std::optional<Duration> due() const;
  void go_on();

  const RecordedSteps& steps_;
  const Pace pace_;
  const std::function<void(const Step&)> play_;
  std::vector<std::uint32_t> own_;
  std::size_t next_ = 0;
  Duration played_;              // the last step
  Duration base_, recorded_;     // the last one that is no store, in this run and in the recorded one
  bool waits_ = false;
  DeviceOutputs outputs_;
  Alarm due_{[this] { go_on(); }};
};

}  // namespace rnicsim::sim::rerun
