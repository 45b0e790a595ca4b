// Pids as a simulated program knows them.
#pragma once

#include <sys/types.h>

namespace rnicsim::clock {

// This process, its parent or a child of it; anything else stays as it is. Negative: a group.
pid_t real_pid_of(pid_t pid);

}  // namespace rnicsim::clock
