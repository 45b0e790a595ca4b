// How many completions came in each of many equal stretches of simulated time. The longer the time, the longer each: so
// there are never more than kMost, however long a run takes, and what they are depends on nothing but times.
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

  // No more than `most` of them.
  explicit Batches(Duration from = {}, std::size_t most = kMost) : from_(from), most_(most) {}

  void add(Duration at, std::uint64_t count) {
    if (at < from_) return;
    while ((at - from_).ps / length_.ps >= static_cast<std::int64_t>(most_)) join();
    const auto place = static_cast<std::size_t>((at - from_).ps / length_.ps);
    if (place >= counts_.size()) counts_.resize(place + 1);
    counts_[place] += count;
  }
  // Another process's, of the same time.
  void add(Batches other);

  // Of the whole stretches up to then.
  std::vector<std::uint64_t> until(Duration end) const;
  Duration length_until(Duration end) const;

  void put(ByteWriter& out) const;
  static Batches take(ByteReader& in);

 private:
  void join();  // by twos

  Duration from_;
  std::size_t most_;
  Duration length_ = kShortest;
  std::vector<std::uint64_t> counts_;
};

}  // namespace rnicsim::sim::bench
