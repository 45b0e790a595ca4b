// SPDX-License-Identifier: Apache-2.0
// rnicsim complete: candidates for the shells' completions (sim/completion). They are taken from the command line's own
// definition, so that no second list can become outdated.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>

#include "sim/commands/command.h"
#include "sim/config/config.h"
#include "sim/config/data_files.h"
#include "sim/config/param_list.h"

namespace rnicsim::sim {
namespace {

using Words = std::vector<std::string>;

Words parameters() {
  Config config;
  Words paths;
  const ParamList all(config);
  for (const auto& entry : all.entries()) paths.push_back(entry.path + '=');
  return paths;
}

// Values that the type of an option stands for. None for a file: the shell completes file names itself.
Words values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type == "NIC") return data_names(DataKind::nic);
  if (type == "PROFILE") return data_names(DataKind::host);
  if (type == "TOPOLOGY") return data_names(DataKind::topology);
  if (type == "WORKLOAD") return data_names(DataKind::workload);
  if (type == "SWEEP") return data_names(DataKind::sweep);
  if (type == "KEY=VALUE" || type == "KEY=VALUES") return parameters();
  return type.find('|') == type.npos ? Words{} : CLI::detail::split(type, '|');
}

Words commands_of(const CLI::App& program) {
  Words names{"--help"};
  if (program.get_parent() == nullptr) names.emplace_back("--version");
  for (const CLI::App* command : program.get_subcommands([](const CLI::App* any) { return !any->get_group().empty(); }))
    names.push_back(command->get_name());
  return names;
}

const CLI::Option* option_named(const CLI::App& line, const std::string& name) {
  return name.starts_with('-') ? line.get_option_no_throw(name) : nullptr;
}

Words option_names(const CLI::App& line) {
  Words names;
  for (const CLI::Option* option : line.get_options())
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

Words positional_values(const CLI::App& line) {
  Words values;
  for (const CLI::Option* option : line.get_options())
    if (option->get_positional()) std::ranges::copy(values_of(*option), std::back_inserter(values));
  return values;
}

const CLI::App* command_named(const CLI::App& program, const std::string& name) {
  const auto named = program.get_subcommands([&](const CLI::App* any) { return any->get_name() == name; });
  return named.empty() ? nullptr : named.front();
}

// Candidates for the last word, which may be empty. The first word is a command or the beginning of one. A command may
// have tools, which are subcommands.
Words candidates(const CLI::App& program, const Words& words) {
  const std::string& last = words.back();
  if (words.size() == 1) return commands_of(program);
  const CLI::App* line = command_named(program, words.front());
  if (line == nullptr) return {};
  if (line->get_require_subcommand_min() > 0 && words.size() == 2) return commands_of(*line);
  if (line->get_require_subcommand_min() > 0) line = command_named(*line, words[1]);
  if (line == nullptr) return {};
  if (const auto equals = last.find('='); last.starts_with("--") && equals != last.npos) {
    const CLI::Option* option = option_named(*line, last.substr(0, equals));
    Words values = option ? values_of(*option) : Words{};
    for (auto& value : values) value.insert(0, last.substr(0, equals + 1));
    return values;
  }
  const CLI::Option* before = option_named(*line, words[words.size() - 2]);
  if (before != nullptr && before->get_type_size_max() > 0) return values_of(*before);
  return last.starts_with('-') ? option_names(*line) : positional_values(*line);
}

}  // namespace

Command add_complete(CLI::App& app, const Program& words) {
  CLI::App& command = *app.add_subcommand("complete", "print possible completions of the last word: for shells");
  command.group("");
  command.set_help_flag();  // --help is an ordinary word here
  command.prefix_command();
  return {&command, [&app, &words] {
            Words typed(words.begin() + 2, words.end());
            if (typed.empty()) typed.emplace_back();
            for (const auto& candidate : candidates(app, typed))
              if (candidate.starts_with(typed.back())) fmt::print("{}\n", candidate);
            return 0;
          }};
}

}  // namespace rnicsim::sim
