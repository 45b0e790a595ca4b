// Results as the page takes them: by columns, rounded, and not more than a page can hold.
#pragma once

#include <vector>

#include "sim/report/result_set.h"
#include "sim/results/json.h"

namespace rnicsim::sim::report {

// How much of what is many goes into the page. What varies most goes first, and what is left out is counted.
struct PageLimits {
  std::size_t counter_cells = 40'000;  // counters x points, of all sets
  std::size_t resources = 40;          // of a set
};

Json page_data(const std::vector<ResultSet>& sets, const std::vector<std::string>& invocation,
                                 const PageLimits& limits = {});

}  // namespace rnicsim::sim::report
