// Other processes of the simulated host, by their numbers there.
#pragma once

#include <sys/types.h>

#include <optional>

namespace rnicsim::clock {

// Nothing: there is no such process on this host (or the caller can't ask, in a signal handler without its turn).
std::optional<pid_t> find_process(pid_t virtual_pid);

}  // namespace rnicsim::clock
