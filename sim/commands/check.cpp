// SPDX-License-Identifier: Apache-2.0
// rnicsim check: runs a folder of cases, and compares the outcome with the expected results.
#include "sim/check/check.h"
#include "sim/check/bisect.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "sim/commands/command.h"
#include "sim/commands/options.h"

namespace rnicsim::sim {

Command add_check(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("check", "run a folder of cases and compare with the expected results: docs/check.md");
  const auto options = std::make_shared<check::CheckOptions>();
  command.add_option("FOLDER", options->folder, "folder of cases: files NAME.toml or NAME/case.toml")->required();
  command.add_option("CASE", options->cases, "name of a case; default: all cases");
  options->jobs = std::max(1u, std::thread::hardware_concurrency());
  command.add_option("-j,--jobs", options->jobs, "cases in parallel; the results do not depend on this number")
      ->check(CLI::Range(1, 256));
  command
      .add_option("--junit", options->junit,
                  "write the results to this file, in JUnit's format, for Jenkins and GitLab")
      ->type_name("FILE");
  add_json(command, options->json);
  command
      .add_option("--html", options->html,
                  "write the results as an HTML page with both sides of each difference; the page needs no network")
      ->type_name("FILE");
  std::map<std::string, std::optional<check::Level>> levels;
  for (const auto level : {check::Level::exact, check::Level::order, check::Level::statistical})
    levels[check::to_string(level)] = level;
  add_choice(command, "--level", options->level, levels,
             "compare all cases at this level; overrides their key `compare`");
  auto* history =
      command
          .add_option("--history", options->history, "add the results and their numbers to the history in this folder")
          ->type_name("FOLDER");
  auto* label =
      command.add_option("--label", options->label, "label of this state in the history: a commit or a version");
  history->needs(label);
  label->needs(history);
  command.add_option("--out", options->out, "keep the recordings and the output of each case in this folder")
      ->type_name("FOLDER");
  command.add_option("--path", options->path, "search for programs in this folder before PATH; may be repeated")
      ->allow_extra_args(false)
      ->type_name("FOLDER");
  auto* bisect = command
                     .add_option("--bisect", options->bisect,
                                 "find the first commit in this range at which a case fails, in a separate worktree")
                     ->type_name("GOOD..BAD");
  command
      .add_option("--build", options->build,
                  "shell command before the cases of each commit; a commit at which the command fails is skipped")
      ->needs(bisect)
      ->type_name("COMMAND");
  auto* update = command.add_flag("--update", options->update,
                                  "show the differences, ask, and make the new results the expected results");
  command.add_flag("--yes", options->yes, "write without a question")->needs(update);
  for (const char* other : {"--history", "--out", "--update"}) bisect->excludes(command.get_option(other));
  command.footer(
      "The exit status is 0 if all cases passed; 1 if a case failed or is broken; 2 if there was no case or all cases "
      "are "
      "broken; 128 + signal if a signal ended the check. With --bisect: 0 if the first bad commit was found; 1 if "
      "skipped commits leave several candidates; 2 if GOOD is not good or BAD is not bad.");
  return {&command,
          [options] { return options->bisect.empty() ? check::run_check(*options) : check::run_bisect(*options); }};
}

}  // namespace rnicsim::sim
