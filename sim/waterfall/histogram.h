// Durations by the hundred million in fixed memory: log-linear buckets, each less than 1% wide, with the sum of what is
// in it. So a percentile is off by less than 1%, and exact when the values around it are equal. Means are exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/base/units.h"

namespace rnicsim::sim {

struct Spread {
  std::uint64_t count = 0;
  Duration sum, mean, p50, p99, least, most;
};

class Histogram {
 public:
  void add(Duration value);
  Spread spread() const;

 private:
  struct Bucket {
    std::uint64_t count = 0;
    std::int64_t sum = 0;
  };

  static std::size_t bucket_of(std::uint64_t ps);
  Duration percentile(std::uint64_t hundredths) const;

  std::uint64_t zeros_ = 0;  // what most stages of most operations take: they need no buckets
  std::uint64_t count_ = 0;
  Duration sum_, least_, most_;
  std::vector<Bucket> buckets_;
};

}  // namespace rnicsim::sim
