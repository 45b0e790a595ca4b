// rnicsim report: results as a page to look at.
#include "sim/report/report.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "sim/commands/command.h"

namespace rnicsim::sim {

Command add_report(CLI::App& app, const Program& words) {
  CLI::App& command =
      *app.add_subcommand("report", "make one page of results, with plots; it opens offline: docs/report.md");
  const auto options = std::make_shared<report::ReportOptions>();
  command
      .add_option("RESULTS", options->results,
                  "a folder that `sweep` wrote, or a file of `bench --json` or `run --json`; several are shown side "
                  "by side")
      ->required();
  command.add_option("-o,--output", options->output, "the page, or - for standard output")
      ->type_name("FILE")
      ->capture_default_str();
  command.footer("The exit status is 0, and 2 when results cannot be read or the page cannot be written.");
  return {&command, [options, &words] {
            options->invocation = words;
            return report::write_report(*options);
          }};
}

}  // namespace rnicsim::sim
