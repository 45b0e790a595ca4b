// The level `statistical`: rates and latencies of several seeds, before and now.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/check/case.h"
#include "sim/check/trace_numbers.h"
#include "sim/recording/trace_diff.h"
#include "sim/results/json.h"

namespace rnicsim::sim::check {

// The numbers of all seeds' runs.
struct Statistics {
  TraceHeader header;  // of the first seed's run
  std::map<std::uint64_t, Numbers> seeds;
};
Json statistics_json(const Statistics& statistics);
// nullopt: the text is not what statistics_json() makes.
std::optional<Statistics> parse_statistics(std::string_view text);

struct StatisticalDifference {
  std::vector<std::string> lines;  // a line each of the numbers that differ, the clearest first
  std::size_t compared = 0;        // numbers
  std::size_t undecided = 0;       // of those: the interval reaches into and beyond the tolerance
};
// Both have the numbers of the rules' seeds. Runs of a seed are pairs: the mean of their differences has an interval of
// confidence (Student's t), whose level all compared numbers share (Bonferroni). A number differs when the whole
// interval is outside of its tolerance, or when seeds have the number in one of the two alone. ConfigError: there is
// no number to compare.
StatisticalDifference compare_statistics(const ExpectedStatistics& rules, const Statistics& expected,
                                         const Statistics& now);

}  // namespace rnicsim::sim::check
