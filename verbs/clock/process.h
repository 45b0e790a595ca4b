// Pids as a simulated program knows them.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// This process, its parent or a child of it; anything else stays as it is. Negative: a group.
pid_t real_pid_of(pid_t pid);
// As wait4(2), with waitid(2)'s options; `pid` is a child, or -1 any.
pid_t wait_for_child(abi::ThreadSlot& slot, pid_t pid, int* status, int options, rusage* usage);
// The system call waitid(2), which tells more than the C library's.
int wait_by_id(idtype_t type, id_t id, siginfo_t* info, int options, rusage* usage);

}  // namespace rnicsim::clock
