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
      *app.add_subcommand("check", "run a folder of cases, and compare with what is expected: docs/check.md");
  const auto options = std::make_shared<check::CheckOptions>();
  command.add_option("FOLDER", options->folder, "of NAME.toml or NAME/case.toml, a case each")->required();
  command.add_option("CASE", options->cases, "names of cases; default: all");
  options->jobs = std::max(1u, std::thread::hardware_concurrency());
  command.add_option("-j,--jobs", options->jobs, "cases at a time; they change no result")->check(CLI::Range(1, 256));
  command.add_option("--junit", options->junit, "write the outcome to this file, for Jenkins and GitLab")
      ->type_name("FILE");
  add_json(command, options->json);
  command
      .add_option("--html", options->html,
                  "write the outcome as a page, with both sides of what differs; it opens offline")
      ->type_name("FILE");
  std::map<std::string, std::optional<check::Level>> levels;
  for (const auto level : {check::Level::exact, check::Level::order, check::Level::statistical})
    levels[check::to_string(level)] = level;
  add_choice(command, "--level", options->level, levels, "compare all cases so, whatever their `compare` says");
  auto* history =
      command
          .add_option("--history", options->history, "add the outcome and its numbers to the history in this folder")
          ->type_name("FOLDER");
  auto* label = command.add_option("--label", options->label, "what a history calls this state: a commit, a version");
  history->needs(label);
  label->needs(history);
  command.add_option("--out", options->out, "keep what every case recorded and printed in this folder")
      ->type_name("FOLDER");
  command.add_option("--path", options->path, "look for programs in this folder before PATH; may be repeated")
      ->allow_extra_args(false)
      ->type_name("FOLDER");
  auto* bisect = command
                     .add_option("--bisect", options->bisect,
                                 "find the first commit between these at which a case fails, in a worktree of its own")
                     ->type_name("GOOD..BAD");
  command
      .add_option("--build", options->build,
                  "at each commit, before its cases; a commit at which this shell command fails is not judged")
      ->needs(bisect)
      ->type_name("COMMAND");
  auto* update =
      command.add_flag("--update", options->update, "show what differs, ask, and make it what is expected from now on");
  command.add_flag("--yes", options->yes, "write without being asked")->needs(update);
  for (const char* other : {"--junit", "--json", "--html", "--history", "--out", "--update"})
    bisect->excludes(command.get_option(other));
  command.footer(
      "The exit status is 0 when all cases passed, 1 when one failed or is broken, 2 when there was nothing to run or "
      "all are broken, 128 + signal when it was ended by one. With --bisect: 0 when one commit is the first "
      "bad one, 1 when commits that cannot be judged leave several, 2 when GOOD is not good or BAD is not bad.");
  return {&command,
          [options] { return options->bisect.empty() ? check::run_check(*options) : check::run_bisect(*options); }};
}

}  // namespace rnicsim::sim
