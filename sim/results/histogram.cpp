// SPDX-License-Identifier: Apache-2.0
#include "sim/results/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace rnicsim::sim {
namespace {

constexpr int kBits = 8;  // log2 of the buckets an octave

// Exact below 2^(kBits + 1); above, the leading bit and the next kBits bits count.
std::size_t bucket_of(std::uint64_t ps) {
  const int shift = std::max(0, static_cast<int>(std::bit_width(ps)) - kBits - 1);
  return (static_cast<std::size_t>(shift) << kBits) + (ps >> shift);
}

}  // namespace

void Histogram::add(Duration value) {
  value = std::max(value, Duration{});
  least_ = count_ == 0 ? value : std::min(least_, value);
  most_ = std::max(most_, value);
  sum_ += value.ps;
  ++count_;
  if (value == Duration{}) return void(++zeros_);
  const auto number = bucket_of(static_cast<std::uint64_t>(value.ps));
  if (number >= buckets_.size()) buckets_.resize(number + 1);
  ++buckets_[number].count;
  buckets_[number].sum += static_cast<double>(value.ps);
}

void Histogram::add(const Histogram& other) {
  if (other.count_ == 0) return;
  least_ = count_ == 0 ? other.least_ : std::min(least_, other.least_);
  most_ = std::max(most_, other.most_);
  sum_ += other.sum_;
  count_ += other.count_;
  zeros_ += other.zeros_;
  if (buckets_.size() < other.buckets_.size()) buckets_.resize(other.buckets_.size());
  for (std::size_t i = 0; i < other.buckets_.size(); ++i) {
    buckets_[i].count += other.buckets_[i].count;
    buckets_[i].sum += other.buckets_[i].sum;
  }
}

void Histogram::put(ByteWriter& out) const {
  out.put(zeros_);
  out.put(count_);
  out.put(sum_);
  out.put(least_);
  out.put(most_);
  out.put_bytes(std::as_bytes(std::span(buckets_)));
}

Histogram Histogram::take(ByteReader& in) {
  Histogram taken;
  taken.zeros_ = in.take<std::uint64_t>();
  taken.count_ = in.take<std::uint64_t>();
  taken.sum_ = in.take<Wide>();
  taken.least_ = in.take<Duration>();
  taken.most_ = in.take<Duration>();
  const auto buckets = in.take_bytes();
  taken.buckets_.resize(buckets.size() / sizeof(Bucket));
  if (!buckets.empty()) std::memcpy(taken.buckets_.data(), buckets.data(), taken.buckets_.size() * sizeof(Bucket));
  return taken;
}

Duration Histogram::mean() const {
  return count_ == 0 ? Duration{} : Duration{static_cast<std::int64_t>((sum_ + count_ / 2) / count_)};
}

// Nearest rank: the mean of the bucket with that rank.
Duration Histogram::percentile(double share) const {
  const auto rank =
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_))));
  auto seen = zeros_;
  if (rank <= seen) return {};
  for (const auto& bucket : buckets_) {
    seen += bucket.count;
    if (rank > seen) continue;
    const double mean = bucket.sum / static_cast<double>(bucket.count);
    if (mean >= static_cast<double>(most_.ps)) return most_;  // rounding could exceed the largest duration
    return std::max(least_, Duration{std::llround(mean)});
  }
  return most_;
}

Spread Histogram::spread() const {
  return {count_, {static_cast<std::int64_t>(sum_)}, mean(), percentile(0.5), percentile(0.99), least_, most_};
}

}  // namespace rnicsim::sim
