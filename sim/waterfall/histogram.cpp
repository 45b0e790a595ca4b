#include "sim/waterfall/histogram.h"

#include <algorithm>
#include <bit>

namespace rnicsim::sim {
namespace {

constexpr unsigned kSubBits = 7;  // 128 buckets an octave
constexpr std::size_t kSub = 1u << kSubBits;
constexpr unsigned kMostBits = 48;  // 281 s; longer ones share the last bucket
constexpr std::size_t kBuckets = (kMostBits - kSubBits + 1) * kSub;

}  // namespace

std::size_t Histogram::bucket_of(std::uint64_t ps) {
  if (ps < kSub) return ps;
  const auto octave = static_cast<unsigned>(std::bit_width(ps)) - 1;
  if (octave >= kMostBits) return kBuckets - 1;
  return (octave - kSubBits + 1) * kSub + ((ps >> (octave - kSubBits)) & (kSub - 1));
}

void Histogram::add(Duration value) {
  least_ = count_ == 0 ? value : std::min(least_, value);
  most_ = std::max(most_, value);
  ++count_;
  if (value.ps <= 0) return void(++zeros_);
  sum_ += value;
  if (buckets_.empty()) buckets_.resize(kBuckets);
  auto& bucket = buckets_[bucket_of(static_cast<std::uint64_t>(value.ps))];
  ++bucket.count;
  bucket.sum += value.ps;
}

// Of the value below which so many of a hundred lie (nearest rank): the mean of its bucket.
Duration Histogram::percentile(std::uint64_t hundredths) const {
  const auto rank = std::max<std::uint64_t>((count_ * hundredths + 99) / 100, 1);
  auto seen = zeros_;
  if (rank <= seen) return {};
  for (const auto& bucket : buckets_) {
    seen += bucket.count;
    if (rank <= seen) return {bucket.sum / static_cast<std::int64_t>(bucket.count)};
  }
  return most_;
}

Spread Histogram::spread() const {
  if (count_ == 0) return {};
  const auto count = static_cast<std::int64_t>(count_);
  return {count_, sum_, {(sum_.ps + count / 2) / count}, percentile(50), percentile(99), least_, most_};
}

}  // namespace rnicsim::sim
