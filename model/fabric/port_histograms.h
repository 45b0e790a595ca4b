// SPDX-License-Identifier: Apache-2.0
// Histograms of a switch's port: queue lengths weighted by time, and durations of pauses. They consist of integers, so
// differences (since()) are exact, and they can be sent to another process as bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/base/byte_stream.h"
#include "model/base/ports/priority_map.h"
#include "model/base/stats.h"
#include "model/base/units.h"

namespace rnicsim::fabric {

// Bytes in a queue over time: 8 bins an octave, each with its time and its sum of bytes x time. A percentile is off by
// less than 1/8, and exact when the lengths around it are equal. The mean is exact.
class QueueLengths {
 public:
  // A range of lengths: 0, below 1 KiB, below 2 KiB, and so on by powers of two.
  struct Part {
    std::uint64_t from = 0;
    std::uint64_t below = 0;
    double share = 0;  // fraction of the time
  };

  // The queue had `bytes` bytes for `time`.
  void add(std::uint64_t bytes, Duration time);
  QueueLengths since(const QueueLengths& before) const;

  Duration time() const;
  bool was_filled() const;  // true: the queue was not always empty
  double mean() const;      // bytes
  // Length that the queue did not exceed for `share` of the time (0.5: the median).
  double percentile(double share) const;
  std::vector<Part> parts() const;  // from the shortest; ranges without time are left out

  void put(ByteWriter& out) const;
  static QueueLengths take(ByteReader& in);

 private:
  __extension__ using Wide = unsigned __int128;
  struct Bin {
    Wide byte_ps = 0;
    Counter ps = 0;
  };

  std::vector<Bin> bins_;  // up to the bin of the longest queue
};

// Number of pauses by duration.
class PauseTimes {
 public:
  // A range of durations: below 1 us, below 2 us, and so on by powers of two. The last range has no upper end.
  struct Part {
    std::uint64_t from_us = 0;
    std::uint64_t below_us = 0;
    Counter count = 0;
  };

  void add(Duration time);
  PauseTimes since(const PauseTimes& before) const;
  Counter count() const;
  std::vector<Part> parts() const;  // from the shortest; ranges without pauses are left out

 private:
  static constexpr std::size_t kBins = 40;
  std::array<Counter, kBins> bins_{};
};

// All histograms of a port, by priority.
struct PortHistograms {
  std::array<QueueLengths, kPriorities> lengths;
  std::array<PauseTimes, kPriorities> pauses;

  PortHistograms since(const PortHistograms& before) const;
  void put(ByteWriter& out) const;
  static PortHistograms take(ByteReader& in);
};

// Builds the histograms of a port from changes of its queues. Calls must come in the order of time.
class PortRecord {
 public:
  void length(std::uint8_t priority, std::uint64_t bytes, Duration now);
  // The peer pauses the priority until `until`. `until` = `now` ends the pause.
  void pause(std::uint8_t priority, Duration until, Duration now);
  // Histograms at `now`: the present length of a queue counts up to `now`; a pause counts once it has ended.
  PortHistograms at(Duration now) const;

 private:
  struct Queue {
    std::uint64_t bytes = 0;
    Duration since{};     // time since which the queue has `bytes`
    bool paused = false;  // a pause that is not counted yet
    Duration paused_since{}, paused_until{};
  };
  void end_pause(std::uint8_t priority, Duration now);

  std::array<Queue, kPriorities> queues_{};
  PortHistograms histograms_;
};

}  // namespace rnicsim::fabric
