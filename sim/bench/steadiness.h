// Has a rate come to where it stays, and how well is it known? Of completions counted in equal stretches of time:
// - MSER-5 (White 1997; White, Cobb and Spratt 2000): means of five each; what is left out at the beginning is what
//   makes the rest's standard error the least. When that is half of all or more, too little has been seen.
// - Mann and Kendall's test for a trend in the batch means.
// - The mean's confidence interval from the batch means (Schmeiser 1982: few and long batches).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rnicsim::sim::bench {

// What is less than that share of a rate is no change of it.
inline constexpr double kNoChange = 0.01;

struct Steadiness {
  std::optional<bool> steady;   // nullopt, as what follows: too few completions, or too short a time, to tell
  double truncation = 0;        // the share of the time that MSER-5 would leave out
  double drift = 0;             // the second half's rate over the first half's, less 1
  std::optional<double> reach;  // of the rate's 95 % confidence interval to either side, as a share of it
  std::size_t halted = 0;       // senders that have work to do and completed nothing in one of the halves
  bool fills = false;           // the receivers' backlog grows
};

// The operations of one sender in each half of the measured time.
struct SenderCounts {
  std::uint64_t first = 0, second = 0;
  bool has_work = false;  // at the end something that was posted is not completed
  bool awaits_ack = false, awaits_rnr = false;

  std::uint64_t all() const { return first + second; }
};
// Senders that completed nothing in one half of the time although, by the mean rate of all senders, each would have
// completed ten operations in that half.
std::size_t halted_of(std::span<const SenderCounts> senders);
// `early`, `late`: how many receives waited to be polled on average in the first and in the second half; `stock`: how
// many receives there are in all.
bool fills_up(double early, double late, std::uint64_t stock);

// How many of them MSER-5 leaves out.
std::size_t mser5_truncation(std::span<const std::uint64_t> counts);
// The same as a share of all, of counts long enough to have some in each.
double truncation_of(std::span<const std::uint64_t> counts);
// Whether that is less than half of them, or makes no difference.
bool has_settled(std::span<const std::uint64_t> counts);
// `level`: how often numbers without one may be taken to have a trend.
bool has_trend(const std::vector<double>& values, double level);
// As often as one in a hundred of all the flows of a run.
inline double level_of_trend(std::size_t flows) { return 0.01 / static_cast<double>(flows); }
// Of a measured interval.
Steadiness steadiness_of(std::span<const std::uint64_t> counts, double level);

}  // namespace rnicsim::sim::bench
