// Durations by the hundred million in little memory: buckets of equal ratio, 256 an octave, with the sum of what is in
// each. So a percentile is off by less than 1/256, and exact when the values around it are equal. Means are exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/base/byte_stream.h"
#include "model/base/units.h"

namespace rnicsim::sim {

struct Spread {
  std::uint64_t count = 0;
  Duration sum, mean, p50, p99, least, most;
};

class Histogram {
 public:
  // What is negative counts as none.
  void add(Duration value);
  void add(const Histogram& other);

  std::uint64_t count() const { return count_; }
  Duration least() const { return least_; }
  Duration most() const { return most_; }
  Duration mean() const;
  // The smallest value that is not less than `share` of all: 0.5 for the median. 0 when there are none.
  Duration percentile(double share) const;
  Spread spread() const;

  void put(ByteWriter& out) const;
  static Histogram take(ByteReader& in);

 private:
  __extension__ using Wide = __int128;
  struct Bucket {
    std::uint64_t count = 0;
    double sum = 0;
  };

  std::uint64_t zeros_ = 0;  // what most stages of most operations take: they need no buckets
  std::uint64_t count_ = 0;
  Wide sum_ = 0;
  Duration least_, most_;
  std::vector<Bucket> buckets_;  // up to that of the most
};

}  // namespace rnicsim::sim
