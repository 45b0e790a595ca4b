// CPU time, as a host's kernel accounts for it: what a thread's clock has gone on since it started, but for its waits.
#pragma once

#include "sim/attached/process.h"

namespace rnicsim::sim {

// A wait in which a thread needs no processor. (A command or an MMIO read holds one, like polls and spins.)
bool leaves_processor(ThreadState state);
void leave_processor(Thread& thread);
void take_processor(Thread& thread);

void start_cpu_time(Thread& thread);
void end_cpu_time(Thread& thread);  // its process keeps it
// Of the thread that made an exec: the new image's first has it.
void keep_cpu_time(Process& process, Duration used);

Duration cpu_time(const Thread& thread);
Duration cpu_time(const Process& process);
Duration family_time(const Process& process);  // with that of the children that it has waited for

}  // namespace rnicsim::sim
