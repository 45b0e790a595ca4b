// Values over time, as counter tracks of a timeline in the trace-event format. All tracks together have a bounded
// number of samples: a track that has too many is thinned out, and keeps its peaks.
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

  // `process`, `name` and `unit` as the format has them: Perfetto shows the name and, behind it, the unit.
  CounterTrack(std::uint32_t process, std::string name, std::string unit)
      : process_(process), name_(std::move(name)), unit_(std::move(unit)) {}

  // The value from `at` on. Calls come in the order of time. Of several values at the same time the last counts. A
  // value that equals the one before makes no sample.
  void add(Duration at, double value);
  // Leaves at most `most` samples, or four if `most` is less. Time is divided into equal stretches. Of each stretch the
  // first, the least, the most and the last sample stay, so peaks stay when a track is thinned out again.
  void thin(std::size_t most);

  const std::vector<Sample>& samples() const { return samples_; }
  bool has_changed() const { return samples_.size() > 1; }
  std::uint32_t process() const { return process_; }
  // A line each sample, with a comma at its end.
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
  // `most`: samples of all tracks together. More are kept only where `most` is less than a few samples for each track.
  explicit CounterTracks(std::size_t most) : limit_(most) {}

  // The reference stays valid.
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
