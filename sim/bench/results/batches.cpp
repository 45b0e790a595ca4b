// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/results/batches.h"

#include <algorithm>
#include <utility>

namespace rnicsim::sim::bench {

void Batches::join() {
  const auto half = (counts_.size() + 1) / 2;
  for (std::size_t i = 0; i < half; ++i)
    counts_[i] = counts_[2 * i] + (2 * i + 1 < counts_.size() ? counts_[2 * i + 1] : 0);
  counts_.resize(half);
  length_ = 2 * length_;
}

void Batches::add(Batches other) {
  while (length_ < other.length_) join();
  while (other.length_ < length_) other.join();
  counts_.resize(std::max(counts_.size(), other.counts_.size()));
  for (std::size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
}

Duration Batches::length_until(Duration end) const {
  auto length = length_;
  while ((end - from_).ps / length.ps > static_cast<std::int64_t>(most_)) length = 2 * length;
  return length;
}

std::vector<std::uint64_t> Batches::until(Duration end) const {
  if (end <= from_) return {};
  auto joined = *this;
  const auto length = length_until(end);
  while (joined.length_ < length) joined.join();
  joined.counts_.resize(static_cast<std::size_t>((end - from_).ps / length.ps));
  return std::move(joined.counts_);
}

void Batches::put(ByteWriter& out) const {
  out.put(from_);
  out.put(most_);
  out.put(length_);
  out.put_bytes(std::as_bytes(std::span(counts_)));
}

Batches Batches::take(ByteReader& in) {
  const auto from = in.take<Duration>();
  Batches batches(from, in.take<std::size_t>());
  batches.length_ = in.take<Duration>();
  const auto bytes = in.take_bytes();
  batches.counts_.resize(bytes.size() / sizeof(std::uint64_t));
  if (!bytes.empty()) std::memcpy(batches.counts_.data(), bytes.data(), bytes.size());
  return batches;
}

}  // namespace rnicsim::sim::bench
