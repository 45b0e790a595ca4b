// SPDX-License-Identifier: Apache-2.0
// Processor affinity as a simulated program sets and reads it. The simulator decides where the threads really run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// Affinity of the thread with virtual number `number`; the number of a process means its first thread, 0 the caller.
// Return 0 or errno.
int get_affinity(abi::ThreadSlot& slot, std::uint64_t number, abi::ProcessorSet& set);
int set_affinity(abi::ThreadSlot& slot, std::uint64_t number, const abi::ProcessorSet& set);
// sched_getaffinity as syscall() answers it: the number of bytes written, or -1 with errno.
long get_affinity_call(abi::ThreadSlot& slot, long number, std::size_t size, void* bytes);

// Fixes the number of malloc's arenas. By default it depends on the processors that the process may use when malloc
// counts them.
void fix_malloc_arenas();

}  // namespace rnicsim::clock
