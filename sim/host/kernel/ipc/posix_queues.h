// SPDX-License-Identifier: Apache-2.0
// POSIX message queues by system call: names without the leading slash of the C library's names.
#pragma once

#include <mqueue.h>
#include <sys/types.h>

namespace rnicsim::clock {

int open_queue_call(const char* name, int flags, mode_t mode, mq_attr* attributes);
int unlink_queue_call(const char* name);

}  // namespace rnicsim::clock
