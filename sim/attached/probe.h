// Does this system let the simulator do what it lives by? Containers' profiles and ptrace settings may not.
#pragma once

#include <string>

namespace rnicsim::sim {

// Tries it on a child of this process's own. Empty, or one line: what is refused, why perhaps, and the remedy.
std::string system_problem();

}  // namespace rnicsim::sim
