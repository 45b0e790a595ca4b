// The manual's pages, from the same text as --help.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace rnicsim::sim {

// A page for man(1): rnicsim(1) of the program's own line, rnicsim-COMMAND(1) of a command's.
std::string manual_page(const CLI::App& line);

}  // namespace rnicsim::sim
