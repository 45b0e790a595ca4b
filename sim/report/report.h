// rnicsim report: results as a page to look at.
#pragma once

#include <string>
#include <vector>

namespace rnicsim::sim::report {

struct ReportOptions {
  std::vector<std::string> results;  // folders of sweeps, files of runs
  std::string output = "report.html";
  std::vector<std::string> invocation;  // the command line, for the page
};

// 0. ConfigError: results that cannot be read, or a page that cannot be written; no page is left half.
int write_report(const ReportOptions& options);

}  // namespace rnicsim::sim::report
