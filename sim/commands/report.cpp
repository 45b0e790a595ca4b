// SPDX-License-Identifier: Apache-2.0
// rnicsim report: shows results as a page.
#include "sim/report/report.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "sim/commands/command.h"
#include "sim/config/config_error.h"
#include "sim/history/page.h"

namespace rnicsim::sim {

Command add_report(CLI::App& app, const Program& words) {
  CLI::App& command = *app.add_subcommand("report", "make an HTML page of results with plots: docs/report.md");
  const auto options = std::make_shared<report::ReportOptions>();
  const auto history = std::make_shared<std::string>();
  auto* results = command.add_option(
      "RESULTS", options->results,
      "a folder of `sweep`, or a file of `bench --json` or `run --json`; several results are shown side by side");
  auto* folder = command
                     .add_option("--history", *history,
                                 "show the history in this folder, which `check --history` wrote; docs/check.md")
                     ->type_name("FOLDER");
  folder->excludes(results);
  command.add_option("-o,--output", options->output, "file of the page; -: standard output")
      ->type_name("FILE")
      ->capture_default_str();
  command.footer("The exit status is 0; 2 if the results cannot be read or the page cannot be written.");
  return {&command, [options, history, &words] {
            if (!history->empty()) return history::write_page({*history, options->output});
            if (options->results.empty()) throw ConfigError("report: give RESULTS or --history FOLDER");
            options->invocation = words;
            return report::write_report(*options);
          }};
}

}  // namespace rnicsim::sim
