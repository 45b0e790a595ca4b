// SPDX-License-Identifier: Apache-2.0
// Histogram of durations with constant memory: 256 buckets an octave, each with the sum of its values. A percentile is
// off by less than 1/256, and exact when the values around it are equal. Means are exact.
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
  // A negative value is counted as 0.
  void add(Duration value);
  void add(const Histogram& other);

  std::uint64_t count() const { return count_; }
  Duration least() const { return least_; }
  Duration most() const { return most_; }
  Duration mean() const;
  // Smallest value that is not less than `share` of all values (0.5: the median); 0 when the histogram is empty.
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

  std::uint64_t zeros_ = 0;  // number of values that are 0, as most stages take; they need no bucket
  std::uint64_t count_ = 0;
  Wide sum_ = 0;
  Duration least_, most_;
  std::vector<Bucket> buckets_;  // up to the bucket of `most_`
};

}  // namespace rnicsim::sim
