// SPDX-License-Identifier: Apache-2.0
// Number of completions in each of many intervals of equal length in simulated time. The length doubles when there
// would be more than `most` intervals. The counts depend on nothing but times.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/byte_stream.h"
#include "model/base/units.h"

namespace rnicsim::sim::bench {

class Batches {
 public:
  static constexpr std::size_t kMost = 1600;
  static constexpr Duration kShortest{10'000};

  // `most`: limit of the number of intervals.
  explicit Batches(Duration from = {}, std::size_t most = kMost) : from_(from), most_(most) {}

  void add(Duration at, std::uint64_t count) {
    if (at < from_) return;
    while ((at - from_).ps / length_.ps >= static_cast<std::int64_t>(most_)) join();
    const auto place = static_cast<std::size_t>((at - from_).ps / length_.ps);
    if (place >= counts_.size()) counts_.resize(place + 1);
    counts_[place] += count;
  }
  // Adds the counts of another process for the same time.
  void add(Batches other);

  // Counts of the complete intervals before `end`.
  std::vector<std::uint64_t> until(Duration end) const;
  Duration length_until(Duration end) const;

  void put(ByteWriter& out) const;
  static Batches take(ByteReader& in);

 private:
  void join();  // joins pairs of intervals

  Duration from_;
  std::size_t most_;
  Duration length_ = kShortest;
  std::vector<std::uint64_t> counts_;
};

}  // namespace rnicsim::sim::bench
