// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/cancellation.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>

#include "sim/host/shim/next.h"
#include "sim/host/shim/session.h"

RNICSIM_NEXT(pthread_setcancelstate);
RNICSIM_NEXT(pthread_testcancel);

namespace rnicsim::clock {
namespace {

struct Cancellation {
  std::atomic<bool> refused{false};
  std::atomic<bool> pending{false};
};
std::array<Cancellation, abi::kMaxThreads> cancellations;  // by index of the slot
Cancellation& cancellation_of(const abi::ThreadSlot& slot) {
  return cancellations[std::size_t(&slot - &session()->slot(0))];
}
constinit thread_local bool refuses = false;

}  // namespace

void prepare_cancellation(const abi::ThreadSlot& slot) {
  cancellation_of(slot).refused = false;
  cancellation_of(slot).pending = false;
}

void begin_cancellation(const abi::ThreadSlot& slot) {
  if (!simulated()) return;
  cancellation_of(slot).refused = refuses;  // the thread that forked may have disabled cancellation
  next_pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
}

bool mark_cancelled(const abi::ThreadSlot& slot) {
  cancellation_of(slot).pending = true;
  return !cancellation_of(slot).refused;
}

int set_cancel_state(const abi::ThreadSlot& slot, int state) {
  const int before = refuses ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE;
  refuses = state == PTHREAD_CANCEL_DISABLE;
  cancellation_of(slot).refused = refuses;
  return before;
}

void cancellation_point() {
  const abi::ThreadSlot* slot = own_slot();
  // A handler that interrupts a waiting call has no turn: its thread must not end there.
  if (slot == nullptr || slot->turn.load(std::memory_order_relaxed) != abi::ThreadSlot::kProcess) return;
  if (refuses || !cancellation_of(*slot).pending) return;
  next_pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
  next_pthread_testcancel();
}

Uncancelled::Uncancelled()
    : slot_(own_slot()), before_(slot_ != nullptr ? set_cancel_state(*slot_, PTHREAD_CANCEL_DISABLE) : 0) {}
Uncancelled::~Uncancelled() {
  if (slot_ != nullptr) set_cancel_state(*slot_, before_);
}

}  // namespace rnicsim::clock
