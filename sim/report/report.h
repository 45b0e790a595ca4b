// SPDX-License-Identifier: Apache-2.0
// rnicsim report: writes results as a page.
#pragma once

#include <string>
#include <vector>

namespace rnicsim::sim::report {

struct ReportOptions {
  std::vector<std::string> results;  // folders of sweeps, files of runs
  std::string output = "report.html";
  std::vector<std::string> invocation;  // the command line, for the page
};

// Returns 0. ConfigError: results cannot be read, or the page cannot be written; an incomplete page is never left.
int write_report(const ReportOptions& options);

}  // namespace rnicsim::sim::report
