// Durations counted in buckets of equal ratio: a percentile is off by less than 1/256.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "model/base/units.h"

namespace rnicsim::sim::bench {

class Histogram {
 public:
  Histogram() : buckets_(kBuckets) {}

  void add(Duration value) {
    const std::uint64_t ps = value.ps < 0 ? 0 : static_cast<std::uint64_t>(value.ps);
    ++buckets_[bucket(ps)];
    ++count_;
    sum_ += static_cast<double>(ps);
    least_ = std::min(least_, ps);
    most_ = std::max(most_, ps);
  }

  std::uint64_t count() const { return count_; }
  Duration least() const { return duration(count_ == 0 ? 0 : least_); }
  Duration most() const { return duration(most_); }
  Duration mean() const {
    return duration(count_ == 0 ? 0 : static_cast<std::uint64_t>(std::llround(sum_ / static_cast<double>(count_))));
  }
  // The smallest value that is not less than `share` of all: 0.5 for the median. 0 when there are none.
  Duration percentile(double share) const {
    const auto rank =
        std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_))));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      seen += buckets_[i];
      if (seen >= rank) return duration(std::clamp(middle(i), least_, most_));
    }
    return {};
  }

 private:
  static constexpr int kBits = 7;  // buckets an octave, as a power of two
  static constexpr std::size_t kBuckets = (std::size_t{64} - kBits) << kBits;

  // Exact below 2^(kBits + 1); above, the leading bit and the kBits after it.
  static std::size_t bucket(std::uint64_t value) {
    const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - kBits - 1);
    return (static_cast<std::size_t>(shift) << kBits) + (value >> shift);
  }
  static std::uint64_t middle(std::size_t bucket) {
    const std::size_t shift = bucket < (std::size_t{2} << kBits) ? 0 : (bucket >> kBits) - 1;
    const std::uint64_t first = static_cast<std::uint64_t>(bucket - (shift << kBits)) << shift;
    return first + ((std::uint64_t{1} << shift) >> 1);
  }
  static Duration duration(std::uint64_t ps) { return {static_cast<std::int64_t>(ps)}; }

  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  std::uint64_t least_ = ~0ull;
  std::uint64_t most_ = 0;
  double sum_ = 0;
};

}  // namespace rnicsim::sim::bench
