// The children of this process that it has not waited for.
#pragma once

#include <sys/types.h>

#include "model/abi/attach.h"

namespace rnicsim::clock {

struct Child {
  pid_t virtual_pid = 0;  // as the program sees it
  pid_t real_pid = 0;
  bool outside = false;   // it never attached: the program sees its real pid
};

// Tells the simulator of a child (forked or spawned) and waits until it has attached. Returns the pid that the program
// may see; -1 and EAGAIN if there is no room for it.
pid_t announce(abi::Call code, pid_t real_pid);

// Null: there is none. Signal handlers may look, too.
const Child* find_child(pid_t virtual_pid);
const Child* find_child_outside();
const Child* find_real_child(pid_t real_pid);
void forget_child(pid_t virtual_pid);
// A new process has none.
void forget_children();

}  // namespace rnicsim::clock
