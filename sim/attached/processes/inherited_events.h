// SPDX-License-Identifier: Apache-2.0
// timerfds and signalfds that a process has from another process or from its last image.
#pragma once

#include "sim/attached/time/thread_scheduler.h"

namespace rnicsim::sim {

// The timer or signalfd behind an eventfd that another process made. True: the call is answered.
bool find_event(const ThreadScheduler& threads, Thread& thread, abi::ThreadSlot& slot);
void share_events(const Process& parent, Process& child);  // after fork
void keep_open_events(Process& process);                   // after exec

}  // namespace rnicsim::sim
