// SPDX-License-Identifier: Apache-2.0
// CPU time of simulated hosts: how far a thread's clock has advanced since the thread started, without its waits.
#pragma once

#include "sim/attached/processes/process.h"

namespace rnicsim::sim {

// True for a wait that needs no processor. A thread that waits for a command or an MMIO read, polls or spins keeps its
// processor.
bool leaves_processor(ThreadState state);
void leave_processor(Thread& thread);
void take_processor(Thread& thread);

void start_cpu_time(Thread& thread);
void end_cpu_time(Thread& thread);  // the thread's CPU time is added to its process
// After exec: the CPU time of the thread that called exec belongs to the first thread of the new image.
void keep_cpu_time(Process& process, Duration used);

Duration cpu_time(const Thread& thread);
Duration cpu_time(const Process& process);
Duration family_time(const Process& process);  // the process and the children that it has waited for

}  // namespace rnicsim::sim
