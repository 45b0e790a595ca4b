// SPDX-License-Identifier: Apache-2.0
#include "sim/report/report.h"

#include <fmt/format.h>

#include "sim/report/page.h"
#include "sim/report/page_data.h"
#include "sim/report/reader.h"
#include "sim/results/json_output.h"

namespace rnicsim::sim::report {
namespace {

struct Tally {
  std::size_t points = 0, failed = 0, missing = 0;
};

Tally tally_of(const std::vector<ResultSet>& sets) {
  Tally tally;
  for (const auto& set : sets)
    for (const auto& point : set.points) {
      ++tally.points;
      for (const auto& run : point.runs) {
        tally.failed += run.status == Run::Status::failed;
        tally.missing += run.status == Run::Status::missing;
      }
    }
  return tally;
}

std::string counted(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

int write_report(const ReportOptions& options) {
  JsonOutput output(options.output);
  std::vector<ResultSet> sets;
  for (const auto& path : options.results) sets.push_back(read_results(path));
  std::string title;
  for (const auto& set : sets) title += (title.empty() ? "" : ", ") + set.name;
  const auto text = page(title, page_data(sets, options.invocation));
  output.write_text(text);
  const auto tally = tally_of(sets);
  fmt::print("{}: {}, {:.1f} MB{}{}\n", options.output, counted(tally.points, "point"),
             static_cast<double>(text.size()) / 1e6,
             tally.failed ? fmt::format("; {} failed", counted(tally.failed, "run")) : "",
             tally.missing ? fmt::format("; {} not done yet", counted(tally.missing, "run")) : "");
  return 0;
}

}  // namespace rnicsim::sim::report
