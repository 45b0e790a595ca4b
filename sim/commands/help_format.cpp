// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/help_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

namespace rnicsim::sim {
namespace {

// Column where descriptions begin.
constexpr std::size_t kDescriptionColumn = 30;

// Breaks `text` at spaces. Each line after the first begins with `indent` spaces; the first begins at column `indent`.
// A word longer than a line stays whole.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string result;
  std::size_t column = indent;
  bool line_begins = true;
  const auto new_line = [&] {
    result += '\n';
    column = indent;
    line_begins = true;
  };
  while (!text.empty()) {
    if (text.front() == '\n') {
      new_line();
      text.remove_prefix(1);
      continue;
    }
    const auto word = text.substr(0, text.find_first_of(" \n"));
    text.remove_prefix(word.size());
    if (text.starts_with(' ')) text.remove_prefix(1);
    if (!line_begins && column + 1 + word.size() > kHelpColumns) new_line();
    if (line_begins && !result.empty()) result.append(indent, ' ');
    if (!line_begins) result += ' ', ++column;
    result += word;
    column += word.size();
    line_begins = false;
  }
  return result;
}

// Names in the left column; the description begins below names that are too long.
std::string entry(const std::string& names, const std::string& description) {
  std::string text = "  " + names;
  if (text.size() + 1 > kDescriptionColumn) text += '\n';
  const std::size_t used = text.back() == '\n' ? 0 : text.size();
  if (description.empty()) return text + '\n';
  return text + std::string(kDescriptionColumn - used, ' ') + wrapped(description, kDescriptionColumn) + '\n';
}

std::vector<std::string> names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const auto* option : options) names.push_back(option->get_name());
  std::ranges::sort(names);  // the set's order is that of addresses
  return names;
}

// Range from the validator's text "UINT in [1 - 64]", as "1 to 64"; empty: no range.
std::string range_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto begin = type.find(" in [");
  if (begin == type.npos) return {};
  return CLI::detail::find_and_replace(type.substr(begin + 5, type.find(']', begin) - begin - 5), " - ", " to ");
}

class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kDescriptionColumn); }

  std::string make_option(const CLI::Option* option, bool positional) const override {
    std::string names = make_option_name(option, positional);
    if (const auto value = value_name(*option); !value.empty() && value != names) names += ' ' + value;
    return entry(names, full_description(*option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return entry(command->get_name(), command->get_description());
  }
  std::string make_description(const CLI::App* line) const override {
    return wrapped(line->get_description(), 0) + '\n';
  }
  std::string make_footer(const CLI::App* line) const override {
    const auto footer = line->get_footer();
    return footer.empty() ? "" : wrapped(footer, 0) + '\n';
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

std::string value_name(const CLI::Option& option) {
  if (option.get_type_size_max() == 0) return {};
  const std::string type = option.get_type_name();
  // A validator's description follows the name: "UINT:INT in [1 - 64]", "rnic|none:{rnic,none}".
  const auto range = type.find(" in [");
  const auto end = range == type.npos ? type.find(":{") : type.rfind(':', range);
  const std::string name = type.substr(0, end);
  if (name == "TEXT" && option.get_positional()) return {};
  return name == "UINT" || name == "INT" ? "N" : name;
}

std::string full_description(const CLI::Option& option) {
  std::vector<std::string> facts;
  if (const auto range = range_of(option); !range.empty()) facts.push_back(range);
  if (option.get_required()) facts.emplace_back("required");
  if (const auto value = option.get_default_str(); !value.empty()) facts.push_back("default: " + value);
  if (const auto needed = names_of(option.get_needs()); !needed.empty())
    facts.push_back(fmt::format("only with {}", fmt::join(needed, ", ")));
  if (const auto excluded = names_of(option.get_excludes()); !excluded.empty())
    facts.push_back(fmt::format("not with {}", fmt::join(excluded, ", ")));
  if (facts.empty()) return option.get_description();
  return fmt::format("{} ({})", option.get_description(), fmt::join(facts, "; "));
}

}  // namespace rnicsim::sim
