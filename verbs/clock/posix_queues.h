// POSIX message queues, as the system calls of the same names have them.
#pragma once

#include <mqueue.h>
#include <sys/types.h>

namespace rnicsim::clock {

int open_queue_call(const char* name, int flags, mode_t mode, mq_attr* attributes);
int unlink_queue_call(const char* name);

}  // namespace rnicsim::clock
