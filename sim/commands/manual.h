// SPDX-License-Identifier: Apache-2.0
// Pages of the manual, made from the text of --help.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace rnicsim::sim {

// Page for man(1): rnicsim(1) for the program, rnicsim-COMMAND(1) for a command.
std::string manual_page(const CLI::App& line);

}  // namespace rnicsim::sim
