// SPDX-License-Identifier: Apache-2.0
// Checks that this system permits the calls that the simulator needs. Profiles of containers and ptrace settings may
// refuse them.
#pragma once

#include <string>

namespace rnicsim::sim {

// Tries the calls on a child process. Returns an empty string, or one line: the refused call, a likely reason, the
// remedy.
std::string system_problem();

}  // namespace rnicsim::sim
