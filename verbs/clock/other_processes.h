// Other processes of the simulated host, by their numbers there.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace rnicsim::clock {

// Nothing: there is no such process on this host (or the caller can't ask, in a signal handler without its turn).
std::optional<pid_t> find_process(pid_t virtual_pid);
std::optional<std::uint64_t> cpu_time_of_another(pid_t virtual_pid);  // in picoseconds
// By its real number; 0: it is none of this host's.
pid_t number_of_process(pid_t real_pid);

}  // namespace rnicsim::clock
