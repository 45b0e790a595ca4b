// SPDX-License-Identifier: Apache-2.0
// Values over time as counter tracks of a timeline in the trace-event format. The number of samples of all tracks
// together is limited: a track with too many samples is thinned out, and keeps its peaks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "model/base/units.h"

namespace rnicsim::sim {

class CounterTrack {
 public:
  struct Sample {
    Duration at;
    double value;
    bool operator==(const Sample&) const = default;
  };

  // `process`, `name` and `unit` of the format: Perfetto shows the name, followed by the unit.
  CounterTrack(std::uint32_t process, std::string name, std::string unit)
      : process_(process), name_(std::move(name)), unit_(std::move(unit)) {}

  // Sets the value from `at` on. Calls must come in the order of time. At equal times the last value counts. A value
  // equal to the one before adds no sample.
  void add(Duration at, double value);
  // Reduces the track to at most `most` samples (at least four). Time is divided into equal intervals; the first, the
  // smallest, the largest and the last sample of each interval stay, so peaks survive repeated thinning.
  void thin(std::size_t most);

  const std::vector<Sample>& samples() const { return samples_; }
  bool has_changed() const { return samples_.size() > 1; }
  std::uint32_t process() const { return process_; }
  // Appends one line for each sample, with a final comma.
  void append_to(std::string& text) const;

 private:
  const std::uint32_t process_;
  const std::string name_;
  const std::string unit_;
  std::vector<Sample> samples_;
  std::int64_t stretch_ps_ = 1;
};

class CounterTracks {
 public:
  // `most`: limit of samples of all tracks together. Exceeded only if it allows less than a few samples for each track.
  explicit CounterTracks(std::size_t most) : limit_(most) {}

  // The reference stays valid as long as this object.
  CounterTrack& make(std::uint32_t process, std::string name, std::string unit) {
    return tracks_.emplace_back(process, std::move(name), std::move(unit));
  }
  void add(CounterTrack& track, Duration at, double value);
  const std::deque<CounterTrack>& tracks() const { return tracks_; }
  std::size_t samples() const { return samples_; }

 private:
  void thin();

  std::size_t limit_;
  std::size_t samples_ = 0;
  std::deque<CounterTrack> tracks_;
};

}  // namespace rnicsim::sim
