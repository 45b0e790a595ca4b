// SPDX-License-Identifier: Apache-2.0
// Other processes of the simulated host, by their virtual pids.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace rnicsim::clock {

// nullopt: no such process on this host, or the caller is a signal handler without a turn and cannot ask the simulator.
std::optional<pid_t> find_process(pid_t virtual_pid);
std::optional<std::uint64_t> cpu_time_of_another(pid_t virtual_pid);  // in picoseconds
// Virtual pid of the process with real pid `real_pid`; 0: not a process of this host.
pid_t number_of_process(pid_t real_pid);

}  // namespace rnicsim::clock
