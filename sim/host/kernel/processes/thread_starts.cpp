// SPDX-License-Identifier: Apache-2.0
// Starts of threads. A thread has a slot before it runs, and waits there for its first turn.

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <new>

#include "sim/host/kernel/processes/affinity.h"
#include "sim/host/kernel/processes/threads.h"
#include "sim/host/kernel/signals/handlers.h"
#include "sim/host/shim/call_trap.h"
#include "sim/host/shim/cancellation.h"
#include "sim/host/shim/counter/tsc.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(pthread_create);

namespace rnicsim::clock {
namespace {

struct Start {
  void* (*function)(void*);
  void* argument;
  abi::ThreadSlot* slot;
};

// Tells the simulator the affinity of the attributes, which the C library has set for the real thread.
void apply_affinity(abi::ThreadSlot& slot, const abi::ThreadSlot& made, const pthread_attr_t* attributes) {
  abi::ProcessorSet set;
  if (!simulated() || attributes == nullptr ||
      ::pthread_attr_getaffinity_np(attributes, sizeof set, reinterpret_cast<cpu_set_t*>(&set)) != 0)
    return;
  constexpr std::uint64_t kUnset = ~0ull;
  if (std::ranges::count(set.bits, kUnset) == std::ssize(set.bits)) return;
  set_affinity(slot, made.virtual_tid, set);
}

void* run_thread(void* opaque) {
  const Start start = *static_cast<Start*>(opaque);
  own_slot() = start.slot;
  begin_cancellation(*start.slot);
  start.slot->tid = std::uint32_t(checked_call(SYS_gettid));
  // The creator goes on meanwhile. In real time the thread waits, too, because its slot is not served before the first
  // turn.
  wait_for_turn();
  delete static_cast<Start*>(opaque);
  arm_leaving();
  if (simulated()) {
    take_signals();
    trap_tsc();
    trap_calls();
  }
  return start.function(start.argument);
}

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                                  void* argument) noexcept {
  abi::ThreadSlot* slot = simulated() ? simulated_slot() : own_slot();
  if (slot == nullptr) return next_pthread_create(thread, attributes, function, argument);
  if (call(*slot, abi::Call::thread_new) != 0) return EAGAIN;
  const auto index = std::uint32_t(slot->value);
  prepare_cancellation(session()->slot(index));
  auto* start = new (std::nothrow) Start{function, argument, &session()->slot(index)};
  const int error = start != nullptr ? next_pthread_create(thread, attributes, run_thread, start) : EAGAIN;
  if (error == 0) {
    note_thread(index, *thread);
    call(*slot, abi::Call::thread_start, {index});
    apply_affinity(*slot, session()->slot(index), attributes);
  } else {
    delete start;
    call(*slot, abi::Call::thread_exit, {index});  // another slot than the caller's: the caller goes on
  }
  return error;
}
