// SPDX-License-Identifier: Apache-2.0
// Processes by the pids that a simulated program knows (virtual pids).
#pragma once

#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// Real pid of this process, its parent or a child; any other number stays. A negative number means a group.
pid_t real_pid_of(pid_t pid);
// wait4(2) with the options of waitid(2); `pid` is a child, or -1 for any.
pid_t wait_for_child(abi::ThreadSlot& slot, pid_t pid, int* status, int options, rusage* usage);
// The system call waitid(2), which also returns the child's `usage`.
int wait_by_id(idtype_t type, id_t id, siginfo_t* info, int options, rusage* usage);

}  // namespace rnicsim::clock
