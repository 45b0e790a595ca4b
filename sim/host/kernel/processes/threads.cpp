// SPDX-License-Identifier: Apache-2.0
// Threads that run: their slots, their ends, and joins.

#include "sim/host/kernel/processes/threads.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "sim/host/kernel/ipc/addresses.h"
#include "sim/host/shim/cancellation.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/shim/signal_stack.h"
#include "sim/host/shim/spin/timed_loop.h"
#include "sim/host/time/timeline.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(pthread_join);
RNICSIM_NEXT(pthread_timedjoin_np);
RNICSIM_NEXT(pthread_tryjoin_np);
RNICSIM_NEXT(pthread_clockjoin_np);
RNICSIM_NEXT(gettid);

namespace rnicsim::clock {
namespace {

// Tells whether the thread of a slot has ended, so that a join does not block in the real kernel.
struct Joinable {
  std::atomic<pthread_t> thread{0};
  std::atomic<bool> ended{false};
};
std::array<Joinable, abi::kMaxThreads> joinables;

std::uint32_t index_of(const abi::ThreadSlot& slot) { return std::uint32_t(&slot - &session()->slot(0)); }

// Number of threads that have not ended, including the first one.
std::atomic<int> present{1};

// True: the ending thread holds robust mutexes. The real kernel marks them, and wakes no thread that the simulator
// knows.
bool leaves_robust_mutexes() {
  const robust_list_head* list = nullptr;
  std::size_t bytes = 0;
  return raw_call(SYS_get_robust_list, 0, &list, &bytes) == 0 && list != nullptr && list->list.next != &list->list;
}

// Ends the thread for the simulator after return, pthread_exit() or cancellation, and after all other clean-up of the
// thread.
void end_thread() {
  abi::ThreadSlot* slot = own_slot();
  if (slot == nullptr) return;
  const std::uint32_t index = index_of(*slot);
  if (--present == 0) return;  // the process ends with this thread, and announces that
  sync(*slot);  // no other thread runs from here until this one is gone: a thread that finds it ended joins it in the
                // real kernel
  Joinable& joinable = joinables[index];
  joinable.ended = true;
  wake(*slot, &joinable, kEveryone);
  own_slot() = nullptr;
  TimedLoop::release_of_thread();
  release_signal_stack();
  leave(*slot, abi::Call::thread_exit, {0, std::uint64_t(leaves_robust_mutexes())});
}

// The C library calls destructors of keys in rounds while something is left to destroy: this one acts in the last
// round.
pthread_key_t leaving;
void leave_in_last_round(void* round) {
  const auto number = reinterpret_cast<std::uintptr_t>(round);
  if (number >= PTHREAD_DESTRUCTOR_ITERATIONS) return end_thread();
  ::pthread_setspecific(leaving, reinterpret_cast<void*>(number + 1));
}

__attribute__((constructor)) void prepare_leaving() {
  ::pthread_key_create(&leaving, leave_in_last_round);
  joinables[0].thread = ::pthread_self();
  if (session() != nullptr) arm_leaving();
}

}  // namespace

void arm_leaving() { ::pthread_setspecific(leaving, reinterpret_cast<void*>(1)); }

void note_thread(std::uint32_t index, pthread_t thread) {
  // A detached thread leaves its pthread_t in the table, which a new thread may get.
  for (Joinable& known : joinables)
    if (known.thread == thread) known.thread = 0;
  joinables[index].thread = thread;
  joinables[index].ended = false;
  ++present;
}

void forget_other_threads() {
  present = 1;
  joinables[0].thread = ::pthread_self();
}

abi::ThreadSlot* slot_of(pthread_t thread) {
  if (session() == nullptr) return nullptr;
  if (thread == ::pthread_self()) return own_slot();
  const auto found = std::ranges::find_if(joinables, [&](const Joinable& known) { return known.thread == thread; });
  return found != joinables.end() ? &session()->slot(std::uint32_t(found - joinables.begin())) : nullptr;
}

bool other_threads() { return present.load(std::memory_order_relaxed) > 1; }

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

// Returns 0 or ETIMEDOUT.
static int await_end(abi::ThreadSlot& slot, pthread_t thread, std::uint64_t deadline) {
  for (Joinable& joinable : joinables) {
    if (joinable.thread != thread) continue;
    // After the thread has ended, another one may get its slot before this thread has its turn.
    while (joinable.thread == thread && !joinable.ended) {
      cancellation_point();
      if (deadline != abi::kForever && slot.now >= deadline) return ETIMEDOUT;
      wait_on(slot, &joinable, deadline);
    }
    if (joinable.thread == thread) joinable.thread = 0;
    break;
  }
  return 0;
}
RNICSIM_EXPORT int pthread_join(pthread_t thread, void** result) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot != nullptr) await_end(*slot, thread, abi::kForever);
  return next_pthread_join(thread, result);
}
RNICSIM_EXPORT int pthread_clockjoin_np(pthread_t thread, void** result, clockid_t clock, const timespec* deadline) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr || deadline == nullptr) return next_pthread_clockjoin_np(thread, result, clock, deadline);
  const int error = await_end(*slot, thread, moment(clock, *deadline));
  return error != 0 ? error : next_pthread_join(thread, result);
}
RNICSIM_EXPORT int pthread_tryjoin_np(pthread_t thread, void** result) noexcept {
  if (simulated_slot() == nullptr) return next_pthread_tryjoin_np(thread, result);
  const auto found = std::ranges::find_if(joinables, [&](const Joinable& known) { return known.thread == thread; });
  if (found != joinables.end() && !found->ended) return EBUSY;
  if (found != joinables.end()) found->thread = 0;
  return next_pthread_join(thread, result);
}
RNICSIM_EXPORT int pthread_timedjoin_np(pthread_t thread, void** result, const timespec* deadline) {
  if (simulated_slot() == nullptr || deadline == nullptr) return next_pthread_timedjoin_np(thread, result, deadline);
  return ::pthread_clockjoin_np(thread, result, CLOCK_REALTIME, deadline);
}

RNICSIM_EXPORT pid_t gettid() noexcept {
  const abi::ThreadSlot* slot = own_slot();
  return slot != nullptr && simulated() ? pid_t(slot->virtual_tid) : next_gettid();
}
