// SPDX-License-Identifier: Apache-2.0
// Results in the form of the page: by columns, rounded, and limited to the size that a page can hold.
#pragma once

#include <vector>

#include "sim/report/result_set.h"
#include "sim/results/json.h"

namespace rnicsim::sim::report {

// Limits of the page's data. Values with the largest variation are kept; the number of omitted ones is reported.
struct PageLimits {
  std::size_t counter_cells = 40'000;  // counters x points, over all sets
  std::size_t resources = 40;          // for each set
};

Json page_data(const std::vector<ResultSet>& sets, const std::vector<std::string>& invocation,
               const PageLimits& limits = {});

}  // namespace rnicsim::sim::report
