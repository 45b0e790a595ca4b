// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/port_histograms.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

namespace rnicsim::fabric {
namespace {

constexpr int kBinBits = 3;  // log2 of the bins an octave
constexpr std::uint64_t kLeastPart = 1024;
constexpr std::int64_t kPsOfUs = 1'000'000;

// Exact below 2^(kBinBits + 1) bytes; above, the leading bit and the next kBinBits bits count.
std::size_t bin_of(std::uint64_t bytes) {
  const int shift = std::max(0, static_cast<int>(std::bit_width(bytes)) - kBinBits - 1);
  return (static_cast<std::size_t>(shift) << kBinBits) + (bytes >> shift);
}

// Smallest value of a bin.
std::uint64_t least_of(std::size_t bin) {
  if (bin < 2u << kBinBits) return bin;
  const auto leading = (bin & ((1u << kBinBits) - 1)) + (1u << kBinBits);
  return std::uint64_t{leading} << ((bin >> kBinBits) - 1);
}

QueueLengths::Part part_of(std::uint64_t bytes) {
  if (bytes == 0) return {0, 1};
  if (bytes < kLeastPart) return {1, kLeastPart};
  return {std::bit_floor(bytes), 2 * std::bit_floor(bytes)};
}

}  // namespace

void QueueLengths::add(std::uint64_t bytes, Duration time) {
  if (time <= Duration{}) return;
  const auto number = bin_of(bytes);
  if (number >= bins_.size()) bins_.resize(number + 1);
  const auto ps = static_cast<Counter>(time.ps);
  bins_[number].ps += ps;
  bins_[number].byte_ps += Wide{bytes} * ps;
}

QueueLengths QueueLengths::since(const QueueLengths& before) const {
  auto growth = *this;
  for (std::size_t i = 0; i < before.bins_.size(); ++i) {
    growth.bins_[i].ps -= before.bins_[i].ps;
    growth.bins_[i].byte_ps -= before.bins_[i].byte_ps;
  }
  return growth;
}

Duration QueueLengths::time() const {
  Counter ps = 0;
  for (const auto& bin : bins_) ps += bin.ps;
  return {static_cast<std::int64_t>(ps)};
}

bool QueueLengths::was_filled() const {
  return std::ranges::any_of(bins_.begin() + (bins_.empty() ? 0 : 1), bins_.end(),
                             [](const Bin& bin) { return bin.ps != 0; });
}

double QueueLengths::mean() const {
  Wide byte_ps = 0;
  for (const auto& bin : bins_) byte_ps += bin.byte_ps;
  const auto whole = static_cast<double>(time().ps);
  return whole == 0 ? 0 : static_cast<double>(byte_ps) / whole;
}

// Mean of the bin that contains the percentile.
double QueueLengths::percentile(double share) const {
  const auto rank = std::max<Counter>(1, static_cast<Counter>(std::ceil(share * static_cast<double>(time().ps))));
  Counter seen = 0;
  for (const auto& bin : bins_) {
    seen += bin.ps;
    if (bin.ps != 0 && seen >= rank) return static_cast<double>(bin.byte_ps) / static_cast<double>(bin.ps);
  }
  return 0;
}

std::vector<QueueLengths::Part> QueueLengths::parts() const {
  const auto whole = static_cast<double>(time().ps);
  std::vector<Part> parts;
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    if (bins_[i].ps == 0) continue;
    const auto part = part_of(least_of(i));
    if (parts.empty() || parts.back().from != part.from) parts.push_back(part);
    parts.back().share += static_cast<double>(bins_[i].ps) / whole;
  }
  return parts;
}

void QueueLengths::put(ByteWriter& out) const { out.put_bytes(std::as_bytes(std::span(bins_))); }

QueueLengths QueueLengths::take(ByteReader& in) {
  QueueLengths taken;
  const auto bytes = in.take_bytes();
  taken.bins_.resize(bytes.size() / sizeof(Bin));
  if (!bytes.empty()) std::memcpy(taken.bins_.data(), bytes.data(), taken.bins_.size() * sizeof(Bin));
  return taken;
}

void PauseTimes::add(Duration time) {
  const auto us = static_cast<std::uint64_t>(time.ps / kPsOfUs);
  ++bins_[std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(us)), kBins - 1)];
}

PauseTimes PauseTimes::since(const PauseTimes& before) const {
  auto growth = *this;
  for (std::size_t i = 0; i < kBins; ++i) growth.bins_[i] -= before.bins_[i];
  return growth;
}

Counter PauseTimes::count() const {
  Counter count = 0;
  for (const auto bin : bins_) count += bin;
  return count;
}

std::vector<PauseTimes::Part> PauseTimes::parts() const {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < kBins; ++i)
    if (bins_[i] != 0) parts.push_back({i == 0 ? 0 : std::uint64_t{1} << (i - 1), std::uint64_t{1} << i, bins_[i]});
  return parts;
}

PortHistograms PortHistograms::since(const PortHistograms& before) const {
  PortHistograms growth;
  for (std::size_t i = 0; i < kPriorities; ++i) {
    growth.lengths[i] = lengths[i].since(before.lengths[i]);
    growth.pauses[i] = pauses[i].since(before.pauses[i]);
  }
  return growth;
}

void PortHistograms::put(ByteWriter& out) const {
  for (const auto& length : lengths) length.put(out);
  for (const auto& times : pauses) out.put(times);
}

PortHistograms PortHistograms::take(ByteReader& in) {
  PortHistograms taken;
  for (auto& length : taken.lengths) length = QueueLengths::take(in);
  for (auto& times : taken.pauses) times = in.take<PauseTimes>();
  return taken;
}

void PortRecord::length(std::uint8_t priority, std::uint64_t bytes, Duration now) {
  auto& queue = queues_[priority];
  histograms_.lengths[priority].add(queue.bytes, now - queue.since);
  queue.bytes = bytes;
  queue.since = now;
}

// A pause that is renewed before its end continues.
void PortRecord::pause(std::uint8_t priority, Duration until, Duration now) {
  auto& queue = queues_[priority];
  end_pause(priority, now);
  if (until > now) {
    if (!queue.paused) queue.paused_since = now;
    queue.paused = true;
    queue.paused_until = until;
  } else if (queue.paused) {
    queue.paused_until = now;
    end_pause(priority, now);
  }
}

// Counts the pause if its time is over.
void PortRecord::end_pause(std::uint8_t priority, Duration now) {
  auto& queue = queues_[priority];
  if (!queue.paused || queue.paused_until > now) return;
  histograms_.pauses[priority].add(queue.paused_until - queue.paused_since);
  queue.paused = false;
}

PortHistograms PortRecord::at(Duration now) const {
  auto record = *this;
  for (std::uint8_t priority = 0; priority < kPriorities; ++priority) {
    record.length(priority, record.queues_[priority].bytes, now);
    record.end_pause(priority, now);
  }
  return record.histograms_;
}

}  // namespace rnicsim::fabric
