// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/results/steadiness.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <numeric>

#include "sim/bench/results/confidence.h"

namespace rnicsim::sim::bench {
namespace {

constexpr std::size_t kOfMser = 5;
// MSER-5 does not begin within the last few means: some of them may be equal by chance (Hoad, Robinson and Davies
// 2010).
constexpr std::size_t kLastOfMser = 5;
constexpr std::size_t kBatches = 20;
constexpr std::uint64_t kLeastOfBatch = 5;

double sum_of(std::span<const std::uint64_t> counts) {
  return static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
}

double mean_of(std::span<const std::uint64_t> counts) { return sum_of(counts) / static_cast<double>(counts.size()); }

double change(double from, double to) { return from > 0 ? to / from - 1 : to > 0 ? 1 : 0; }

// Means of the last batches. Counts that do not fill a batch are left out at the beginning.
std::vector<double> batch_means(std::span<const std::uint64_t> counts) {
  const auto each = counts.size() / kBatches;
  std::vector<double> means;
  for (std::size_t i = counts.size() - each * kBatches; i < counts.size(); i += each)
    means.push_back(mean_of(counts.subspan(i, each)));
  return means;
}

double drift_of(std::span<const std::uint64_t> counts) {
  const auto half = counts.size() / 2;
  return change(mean_of(counts.first(half)), mean_of(counts.last(half)));
}

}  // namespace

std::size_t mser5_truncation(std::span<const std::uint64_t> counts) {
  const auto batches = counts.size() / kOfMser;
  double sum = 0, squares = 0, least = 0;
  std::size_t best = batches;
  for (std::size_t i = batches; i-- > 0;) {
    const double batch = sum_of(counts.subspan(i * kOfMser, kOfMser));
    sum += batch;
    squares += batch * batch;
    if (i + kLastOfMser >= batches && i != 0) continue;
    const auto left = static_cast<double>(batches - i);
    const double error = (squares - sum * sum / left) / (left * left);
    if (best == batches || error <= least) {
      least = error;
      best = i;
    }
  }
  return best * kOfMser;
}

bool has_settled(std::span<const std::uint64_t> counts) {
  if (counts.size() < 2 * kBatches) return false;
  return truncation_of(counts) < 0.5 || std::abs(drift_of(counts)) <= kNoChange;
}

double truncation_of(std::span<const std::uint64_t> counts) {
  std::vector<std::uint64_t> joined(counts.begin(), counts.end());
  while (joined.size() >= 4 * kBatches && mean_of(joined) < 1) {
    for (std::size_t i = 0; 2 * i + 1 < joined.size(); ++i) joined[i] = joined[2 * i] + joined[2 * i + 1];
    joined.resize(joined.size() / 2);
  }
  return static_cast<double>(mser5_truncation(joined)) / static_cast<double>(joined.size());
}

bool has_trend(const std::vector<double>& values, double level) {
  const auto count = static_cast<double>(values.size());
  double rises = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = i + 1; j < values.size(); ++j)
      rises += values[j] > values[i] ? 1 : values[j] < values[i] ? -1 : 0;
  auto sorted = values;
  std::ranges::sort(sorted);
  double variance = count * (count - 1) * (2 * count + 5);
  for (auto first = sorted.begin(); first != sorted.end();) {
    const auto last = std::upper_bound(first, sorted.end(), *first);
    const auto ties = static_cast<double>(last - first);
    variance -= ties * (ties - 1) * (2 * ties + 5);
    first = last;
  }
  if (variance <= 0) return false;
  const double score = std::max(0.0, std::abs(rises) - 1) / std::sqrt(variance / 18);
  using Plain = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
  return score > quantile(complement(boost::math::normal_distribution<double, Plain>(), level / 2));
}

namespace {

// True: without the counts that MSER-5 leaves out the rate would be another. If these are half or more, the halves are
// compared. A half has half of the counts, so the difference of two halves is only known to twice the reach.
bool warms_up(std::span<const std::uint64_t> counts, const Steadiness& of) {
  const double reach = of.reach.value_or(0);
  if (of.truncation >= 0.5) return std::abs(of.drift) > std::max(kNoChange, 2 * reach);
  const auto cut = static_cast<std::size_t>(std::lround(of.truncation * static_cast<double>(counts.size())));
  return std::abs(change(mean_of(counts.subspan(cut)), mean_of(counts))) > std::max(kNoChange, reach);
}

}  // namespace

Steadiness steadiness_of(std::span<const std::uint64_t> counts, double level) {
  Steadiness result;
  const double sum = sum_of(counts);
  if (counts.size() < 2 * kBatches || sum < double{kBatches * kLeastOfBatch}) return result;
  const auto means = batch_means(counts);
  const auto interval = interval_of(means);
  result.truncation = truncation_of(counts);
  result.drift = drift_of(counts);
  if (interval.mean > 0) result.reach = (interval.high - interval.mean) / interval.mean;
  const bool warming = warms_up(counts, result);
  result.steady = !warming && !(std::abs(result.drift) > kNoChange && has_trend(means, level));
  return result;
}

std::size_t halted_of(std::span<const SenderCounts> senders) {
  if (senders.empty()) return 0;
  constexpr std::uint64_t kEach = 10;
  std::uint64_t first = 0, second = 0;
  for (const auto& sender : senders) {
    first += sender.first;
    second += sender.second;
  }
  const bool tells = std::min(first, second) >= kEach * senders.size();
  if (!tells) return 0;
  return static_cast<std::size_t>(std::ranges::count_if(senders, [](const SenderCounts& sender) {
    return sender.has_work && (sender.first == 0 || sender.second == 0);
  }));
}

bool fills_up(double early, double late, std::uint64_t stock) {
  constexpr double kNoise = 4;
  return late - early > std::max(kNoise, kNoChange * static_cast<double>(stock));
}

}  // namespace rnicsim::sim::bench
