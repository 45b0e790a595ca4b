// Pids as a simulated program knows them.
#pragma once

#include <sys/types.h>

namespace rnicsim::clock {

// This process, its parent or a child of it; anything else stays as it is. Negative: a group.
pid_t real_pid_of(pid_t pid);

// tgkill(2) with a thread of this process as the program knows it; -1 and errno.
long signal_thread(pid_t process, pid_t thread, int signal);

}  // namespace rnicsim::clock
