// SPDX-License-Identifier: Apache-2.0
// Children of this process that it has not waited for.
#pragma once

#include <sys/types.h>

#include "model/abi/attach.h"

namespace rnicsim::clock {

struct Child {
  pid_t virtual_pid = 0;  // the program sees this one
  pid_t real_pid = 0;
  bool outside = false;  // the child never attached: the program sees its real pid
};

// Tells the simulator of a child (forked or spawned) and waits until the child has attached. Returns the pid for the
// program. -1 with EAGAIN: the simulator has no room for the child, which is killed.
pid_t announce(abi::Call code, pid_t real_pid);

// nullptr: no such child. Signal handlers may call these.
const Child* find_child(pid_t virtual_pid);
const Child* find_child_outside();
const Child* find_real_child(pid_t real_pid);
void forget_child(pid_t virtual_pid);
// In a forked child: forgets the parent's children.
void forget_children();

}  // namespace rnicsim::clock
