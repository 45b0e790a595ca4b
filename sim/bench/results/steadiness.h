// SPDX-License-Identifier: Apache-2.0
// Tests whether a rate is steady, and how accurately it is known, from completions counted in equal intervals:
// - MSER-5 (White 1997; White, Cobb and Spratt 2000): means of five counts each. MSER-5 leaves out the beginning that
//   makes the standard error of the rest smallest. If that is half of the counts or more, there are too few counts.
// - Mann and Kendall's test for a trend in the batch means.
// - The mean's confidence interval from the batch means (Schmeiser 1982: few and long batches).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rnicsim::sim::bench {

// A relative change of a rate below this value is no change.
inline constexpr double kNoChange = 0.01;

struct Steadiness {
  std::optional<bool> steady;   // nullopt: too few completions or too short a time; truncation, drift, reach are unset
  double truncation = 0;        // share of the time that MSER-5 leaves out
  double drift = 0;             // rate of the second half over the rate of the first half, minus 1
  std::optional<double> reach;  // half-width of the rate's 95 % confidence interval, relative to the rate
  std::size_t halted = 0;       // senders that have work to do and completed nothing in one of the halves
  bool fills = false;           // the receivers' backlog grows
};

// The operations of one sender in each half of the measured time.
struct SenderCounts {
  std::uint64_t first = 0, second = 0;
  bool has_work = false;  // at the end a posted operation is not completed
  bool awaits_ack = false, awaits_rnr = false;

  std::uint64_t all() const { return first + second; }
};
// Senders that completed nothing in one half of the time although, by the mean rate of all senders, each would have
// completed ten operations in that half.
std::size_t halted_of(std::span<const SenderCounts> senders);
// `early`, `late`: average number of receives that waited to be polled, in the first and in the second half. `stock`:
// number of receives in all.
bool fills_up(double early, double late, std::uint64_t stock);

// Number of counts that MSER-5 leaves out.
std::size_t mser5_truncation(std::span<const std::uint64_t> counts);
// As a share of all counts. Counts are joined first until they are 1 or more on average.
double truncation_of(std::span<const std::uint64_t> counts);
// True: MSER-5 leaves out less than half of the counts, or the two halves have the same rate.
bool has_settled(std::span<const std::uint64_t> counts);
// `level`: probability that values without a trend are found to have one.
bool has_trend(const std::vector<double>& values, double level);
// For all flows of a run together the probability is 1 %.
inline double level_of_trend(std::size_t flows) { return 0.01 / static_cast<double>(flows); }
// Steadiness of the rate in a measured interval.
Steadiness steadiness_of(std::span<const std::uint64_t> counts, double level);

}  // namespace rnicsim::sim::bench
