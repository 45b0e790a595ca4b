// Signals by the numbers that a simulated program knows.
#pragma once

#include <sys/types.h>

namespace rnicsim::clock {

// tgkill(2) with a thread of this process as the program knows it; -1 and errno.
long signal_thread(pid_t process, pid_t thread, int signal);

}  // namespace rnicsim::clock
