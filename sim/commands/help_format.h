// SPDX-License-Identifier: Apache-2.0
// Text of --help in 100 columns, and parts of it that the pages of the manual share.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace CLI {
class FormatterBase;
class Option;
}  // namespace CLI

namespace rnicsim::sim {

// Columns of --help.
inline constexpr std::size_t kHelpColumns = 100;

// Formatter for the program. A command that is added later has the same formatter.
std::shared_ptr<CLI::FormatterBase> help_formatter();

// Placeholder of an option's value, such as FILE; empty: the option takes no value.
std::string value_name(const CLI::Option& option);
// Description, followed by the range and the default of the value, and by the options that must or must not be present.
std::string full_description(const CLI::Option& option);

}  // namespace rnicsim::sim
