// The processors that a thread may use, as a simulated program asks for them and is told: where its threads really run
// is the simulator's affair.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// Of a thread, by its virtual number; of the first one of a process; 0: the caller's own. 0 or errno.
int get_affinity(abi::ThreadSlot& slot, std::uint64_t number, abi::ProcessorSet& set);
int set_affinity(abi::ThreadSlot& slot, std::uint64_t number, const abi::ProcessorSet& set);
// sched_getaffinity, as syscall() answers it: how many bytes, or -1 with errno.
long get_affinity_call(abi::ThreadSlot& slot, long number, std::size_t size, void* bytes);

// The C library makes so many heaps for threads, whatever processors the process is on when it asks.
void fix_malloc_arenas();

}  // namespace rnicsim::clock
