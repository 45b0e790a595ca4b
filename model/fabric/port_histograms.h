// Histograms of one port of a switch: how long the port's queues were, weighted by time, and how long pauses took.
// Histograms are plain values of integers: after - before is exact, and they can go from one process to another as
// bytes.
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

// Bytes of a queue over time. There are 8 bins an octave, each with the time and the bytes that were seen in that time.
// So a percentile is off by less than 1/8, and exact when the lengths around it are equal. The mean is exact.
class QueueLengths {
 public:
  // A part of the lengths: 0, less than 1 KiB, less than 2 KiB, and so on by powers of two.
  struct Part {
    std::uint64_t from = 0;
    std::uint64_t below = 0;
    double share = 0;  // of the time
  };

  // The queue had so many bytes for so long.
  void add(std::uint64_t bytes, Duration time);
  QueueLengths since(const QueueLengths& before) const;

  Duration time() const;
  bool was_filled() const;  // ever
  double mean() const;      // bytes
  // Bytes that the queue did not exceed for that share of the time: 0.5 for the median.
  double percentile(double share) const;
  std::vector<Part> parts() const;  // parts without time are left out; the shortest comes first

  void put(ByteWriter& out) const;
  static QueueLengths take(ByteReader& in);

 private:
  __extension__ using Wide = unsigned __int128;
  struct Bin {
    Wide byte_ps = 0;
    Counter ps = 0;
  };

  std::vector<Bin> bins_;  // up to that of the longest queue
};

// How many pauses took how long.
class PauseTimes {
 public:
  // Less than 1 us, less than 2 us, and so on by powers of two. The last part has all that are longer.
  struct Part {
    std::uint64_t from_us = 0;
    std::uint64_t below_us = 0;
    Counter count = 0;
  };

  void add(Duration time);
  PauseTimes since(const PauseTimes& before) const;
  Counter count() const;
  std::vector<Part> parts() const;  // parts without pauses are left out; the shortest comes first

 private:
  static constexpr std::size_t kBins = 40;
  std::array<Counter, kBins> bins_{};
};

// By priority.
struct PortHistograms {
  std::array<QueueLengths, kPriorities> lengths;
  std::array<PauseTimes, kPriorities> pauses;

  PortHistograms since(const PortHistograms& before) const;
  void put(ByteWriter& out) const;
  static PortHistograms take(ByteReader& in);
};

// Makes the histograms of a port from the changes of the port's queues. Calls come in the order of time.
class PortRecord {
 public:
  void length(std::uint8_t priority, std::uint64_t bytes, Duration now);
  // The other end of the cable pauses the priority until `until`. `until` = `now` ends the pause.
  void pause(std::uint8_t priority, Duration until, Duration now);
  // The histograms at `now`: each queue counts with its present length up to `now`. A pause counts when the pause is
  // over.
  PortHistograms at(Duration now) const;

 private:
  struct Queue {
    std::uint64_t bytes = 0;
    Duration since{};            // the queue has that length
    bool paused = false;         // by a pause that is not counted yet
    Duration paused_since{}, paused_until{};
  };
  void end_pause(std::uint8_t priority, Duration now);

  std::array<Queue, kPriorities> queues_{};
  PortHistograms histograms_;
};

}  // namespace rnicsim::fabric
