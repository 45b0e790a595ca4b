// SPDX-License-Identifier: Apache-2.0
// Level `statistical`: compares rates and latencies of several seeds with the expected ones.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/check/case.h"
#include "sim/check/trace_numbers.h"
#include "sim/results/json.h"
#include "sim/trace_file/trace_diff.h"

namespace rnicsim::sim::check {

// Numbers of the runs of all seeds.
struct Statistics {
  TraceHeader header;  // header of the first seed's trace
  std::map<std::uint64_t, Numbers> seeds;
};
Json statistics_json(const Statistics& statistics);
// nullopt: the text is not the output of statistics_json().
std::optional<Statistics> parse_statistics(std::string_view text);

struct StatisticalDifference {
  std::vector<std::string> lines;  // one line for each number that differs, the largest difference first
  std::size_t compared = 0;        // count of compared numbers
  std::size_t undecided = 0;       // count of compared numbers whose confidence interval crosses the tolerance
};
// Both sides must have the numbers of the seeds in `rules`. The runs of one seed form a pair. The mean of the pairs'
// differences gets a confidence interval (Student's t); all compared numbers share the confidence level (Bonferroni). A
// number differs when its whole interval lies outside the tolerance, or when only one side has the number. ConfigError:
// no number to compare.
StatisticalDifference compare_statistics(const ExpectedStatistics& rules, const Statistics& expected,
                                         const Statistics& now);

}  // namespace rnicsim::sim::check
