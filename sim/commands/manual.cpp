// SPDX-License-Identifier: Apache-2.0
// rnicsim manual: writes the pages of the manual; the build uses it.
#include "sim/commands/manual.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <fstream>
#include <memory>

#include "sim/build_facts.h"
#include "sim/commands/command.h"
#include "sim/commands/help_format.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;

// Escapes text for roff: hyphens, backslashes, and lines that begin like a request.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool first = result.empty() || result.back() == '\n';
    if (first && (c == '.' || c == '\'')) result += "\\&";
    if (c == '-')
      result += "\\-";
    else if (c == '\\')
      result += "\\e";
    else
      result += c;
  }
  return result;
}

std::vector<const CLI::App*> shown_commands(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::string page_name(const CLI::App& line) {
  return line.get_parent() ? line.get_parent()->get_name() + '-' + line.get_name() : line.get_name();
}

std::string synopsis(const CLI::App& line) {
  std::string text =
      fmt::format(".B {}{}\n", line.get_parent() ? line.get_parent()->get_name() + ' ' : "", line.get_name());
  text += line.get_parent() ? "[\\fIOPTIONS\\fR]" : "\\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]";
  for (const CLI::Option* option : line.get_options([](const CLI::Option* any) { return any->get_positional(); })) {
    const auto name = fmt::format("\\fI{}\\fR", escaped(option->get_name(true, false)));
    const auto several = option->get_expected_max() > 1 ? "..." : "";
    text += option->get_required() ? fmt::format(" {}{}", name, several) : fmt::format(" [{}{}]", name, several);
  }
  return text + '\n';
}

std::string option_entry(const CLI::Option& option) {
  std::string names;
  const auto add = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + escaped(name); };
  for (const auto& name : option.get_snames()) add("-" + name);
  for (const auto& name : option.get_lnames()) add("--" + name);
  if (names.empty()) names = escaped(option.get_name(true, false));
  std::string text = fmt::format(".TP\n\\fB{}\\fR", names);
  if (const auto value = value_name(option); !value.empty() && escaped(value) != names)
    text += fmt::format(" \\fI{}\\fR", escaped(value));
  return text + '\n' + escaped(full_description(option)) + '\n';
}

std::string options_of(const CLI::App& line, const char* title, bool positional) {
  std::string text;
  for (const CLI::Option* option : line.get_options())
    if (option->get_positional() == positional && !option->get_group().empty()) text += option_entry(*option);
  return text.empty() ? text : fmt::format(".SH {}\n{}", title, text);
}

// A tool of a command has a section in the command's page, and no page of its own.
std::string tool_section(const CLI::App& tool) {
  std::string text = fmt::format(".SH TOOL {}\n{}\n", escaped(tool.get_name()), escaped(tool.get_description()));
  for (const CLI::Option* option : tool.get_options())
    if (!option->get_group().empty()) text += option_entry(*option);
  return text;
}

std::string commands_section(const CLI::App& program) {
  std::string text = ".SH COMMANDS\n";
  for (const CLI::App* command : shown_commands(program))
    text += fmt::format(".TP\n.BR {} (1)\n{}\n", escaped(page_name(*command)), escaped(command->get_description()));
  return text;
}

std::string see_also(const CLI::App& line) {
  std::string text = ".SH SEE ALSO\n";
  if (line.get_parent())
    text += ".BR rnicsim (1),\n";
  else
    for (const CLI::App* command : shown_commands(line))
      text += fmt::format(".BR {} (1),\n", escaped(page_name(*command)));
  return text + "and the pages named docs/..., which the Debian package installs in /usr/share/doc/rnicsim.\n";
}

constexpr char kEnvironment[] =
    ".SH ENVIRONMENT\n"
    ".TP\n"
    "\\fBRNICSIM_DATA\\fR\n"
    "Folder with nics/, topologies/ and workloads/, in the place of the program's own folder.\n"
    ".TP\n"
    "\\fBRNICSIM_SOCKET\\fR\n"
    "Name of the socket at which \\fBserve\\fR waits for programs, and to which \\fBenv\\fR connects. Without this "
    "variable the name has a random part, and \\fBenv\\fR finds the only simulation of this user.\n"
    ".SH FILES\n"
    "In the folder above the program's:\n"
    ".TP\n"
    "share/rnicsim/\n"
    "NIC profiles, topologies and workloads.\n"
    ".TP\n"
    "lib/rnicsim/\n"
    "Libraries that are loaded into the programs of simulated hosts.\n";

void write(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw ConfigError(fmt::format("{}: cannot be written", shown(path.string())));
}

int write_pages(const CLI::App& program, const fs::path& folder) {
  std::error_code none;
  fs::create_directories(folder, none);
  write(folder / "rnicsim.1", manual_page(program));
  for (const CLI::App* command : shown_commands(program))
    write(folder / (page_name(*command) + ".1"), manual_page(*command));
  return 0;
}

}  // namespace

std::string manual_page(const CLI::App& line) {
  const std::string name = page_name(line);
  std::string title = escaped(name);
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string text = fmt::format(".TH {} 1 \"\" \"rnicsim {}\" rnicsim\n", title, escaped(kVersion));
  text += fmt::format(".SH NAME\n{} \\- {}\n", escaped(name), escaped(line.get_description()));
  text += ".SH SYNOPSIS\n" + synopsis(line);
  if (!line.get_parent())
    text += commands_section(line);
  else
    for (const CLI::App* tool : shown_commands(line)) text += tool_section(*tool);
  text += options_of(line, "ARGUMENTS", true) + options_of(line, "OPTIONS", false);
  if (const auto footer = line.get_footer(); !footer.empty()) text += ".SH NOTES\n" + escaped(footer) + '\n';
  if (!line.get_parent()) text += kEnvironment;
  return text + see_also(line);
}

Command add_manual(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("manual", "write the pages of the manual for man(1)");
  command.group("");  // hidden: only the build uses this command
  const auto folder = std::make_shared<std::string>();
  command.add_option("FOLDER", *folder, "folder for the pages")->required();
  return {&command, [folder, &app] { return write_pages(app, *folder); }};
}

}  // namespace rnicsim::sim
