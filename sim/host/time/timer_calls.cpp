// SPDX-License-Identifier: Apache-2.0
#include "sim/host/time/timer_calls.h"

#include <pthread.h>
#include <string.h>

#include <atomic>
#include <new>

#include "sim/host/kernel/processes/threads.h"
#include "sim/host/time/turn.h"

namespace rnicsim::clock {
namespace {

struct KeptCall {
  std::uint64_t number;
  std::uint32_t timer;
  void (*function)(sigval);
  sigval value;
  pthread_attr_t attributes;
  KeptCall* next;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit KeptCall* first = nullptr;
constinit std::uint64_t last_number = 0;
constinit std::atomic<pid_t> hearing{0};

class Locked {
 public:
  Locked() { ::pthread_mutex_lock(&lock); }
  ~Locked() { ::pthread_mutex_unlock(&lock); }
  Locked(const Locked&) = delete;
};

KeptCall** find(std::uint64_t number) {
  KeptCall** place = &first;
  while (*place != nullptr && (*place)->number != number) place = &(*place)->next;
  return place;
}

// Attributes of the threads to be created: detached, because no thread joins them, with the stack and guard of `from`.
void copy_attributes(const pthread_attr_t* from, pthread_attr_t& to) {
  ::pthread_attr_init(&to);
  ::pthread_attr_setdetachstate(&to, PTHREAD_CREATE_DETACHED);
  std::size_t bytes = 0;
  if (from == nullptr) return;
  if (::pthread_attr_getstacksize(from, &bytes) == 0 && bytes != 0) ::pthread_attr_setstacksize(&to, bytes);
  if (::pthread_attr_getguardsize(from, &bytes) == 0) ::pthread_attr_setguardsize(&to, bytes);
}

// The thread blocks all signals, as its creator does. So does the C library's own.
void* run_call(void* opaque) {
  const KeptCall call = *static_cast<KeptCall*>(opaque);
  delete static_cast<KeptCall*>(opaque);
  call.function(call.value);
  return nullptr;
}

// Starts no thread if the timer has been deleted since.
void start_call(std::uint64_t number) {
  pthread_attr_t attributes;
  KeptCall* made = nullptr;
  {
    const Locked locked;
    const KeptCall* kept = *find(number);
    made = kept != nullptr ? new (std::nothrow) KeptCall(*kept) : nullptr;
    if (made == nullptr) return;
    attributes = made->attributes;
  }
  pthread_t thread;
  if (::pthread_create(&thread, &attributes, run_call, made) != 0) delete made;
}

void* hear(void*) {
  abi::ThreadSlot& slot = *own_slot();
  for (;;) {
    if (call(slot, abi::Call::await_signal, {std::uint64_t{1} << (kEndSignal - 1), abi::kForever}) != 0) continue;
    abi::SignalRecord signal;
    memcpy(&signal, slot.output, sizeof signal);
    start_call(signal.value);
  }
}

}  // namespace

std::uint64_t keep_call(const sigevent& event) {
  auto* kept = new (std::nothrow) KeptCall{};
  if (kept == nullptr) return 0;
  kept->function = event.sigev_notify_function;
  kept->value = event.sigev_value;
  copy_attributes(static_cast<const pthread_attr_t*>(event.sigev_notify_attributes), kept->attributes);
  const Locked locked;
  kept->number = ++last_number;
  kept->next = first;
  first = kept;
  return kept->number;
}

void forget_call(std::uint64_t number) {
  const Locked locked;
  KeptCall** place = find(number);
  KeptCall* kept = *place;
  if (kept == nullptr) return;
  *place = kept->next;
  ::pthread_attr_destroy(&kept->attributes);
  delete kept;
}

void note_timer(std::uint64_t call, std::uint32_t timer) {
  const Locked locked;
  if (KeptCall* kept = *find(call)) kept->timer = timer;
}

void forget_call_of(std::uint32_t timer) {
  std::uint64_t number = 0;
  {
    const Locked locked;
    for (const KeptCall* kept = first; kept != nullptr; kept = kept->next)
      if (kept->timer == timer) number = kept->number;
  }
  if (number != 0) forget_call(number);
}

pid_t hearing_thread() {
  const Locked locked;
  if (hearing != 0) return hearing;
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  copy_attributes(nullptr, attributes);
  pthread_t thread;
  const bool made = ::pthread_create(&thread, &attributes, hear, nullptr) == 0;
  ::pthread_attr_destroy(&attributes);
  const abi::ThreadSlot* slot = made ? slot_of(thread) : nullptr;
  if (slot != nullptr) hearing = pid_t(slot->virtual_tid);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return hearing;
}

void forget_calls() {
  while (first != nullptr) {
    KeptCall* gone = first;
    first = first->next;
    delete gone;
  }
  hearing = 0;
  lock = PTHREAD_MUTEX_INITIALIZER;
}

}  // namespace rnicsim::clock
