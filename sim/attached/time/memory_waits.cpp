// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/time/memory_waits.h"

#include <algorithm>
#include <cerrno>

namespace rnicsim::sim {
namespace {

using abi::ThreadSlot;

constexpr Duration kTick{1};

// Order of two threads of a host that are due at the same time.
bool before(const Thread& one, const Thread& other) { return rank_of(one) < rank_of(other); }

}  // namespace

void MemoryWaits::written(Process& process, std::uint64_t address, std::uint64_t bytes) {
  ++process.memory_writes;
  threads_.progressed();
  const bool ring = address >= abi::kMemoryAddress && address - abi::kMemoryAddress < abi::kMemoryBytes;
  if (ring) process.ring_written = now();
  const Duration visible = now() + threads_.times_of(process).detect;
  for (Thread& thread : process.threads) {
    if (thread.state == ThreadState::spinning) threads_.resume(thread, visible);
    if (thread.loop && (ring || thread.loop->sees(address, bytes))) threads_.end_loop(thread, visible, false);
  }
  if (!process.address_space().shared_page(address)) return;
  for (const auto& other : threads_.processes())
    if (other.get() != &process && other->alive && other->identity().host == process.identity().host)
      wake_spinning(*other);
}

void MemoryWaits::wake_spinning(Process& process) {
  ++process.memory_writes;
  const Duration visible = now() + threads_.times_of(process).detect;
  for (Thread& thread : process.threads) {
    if (thread.state == ThreadState::spinning) threads_.resume(thread, visible);
    if (thread.loop) threads_.end_loop(thread, visible, false);
  }
}

void MemoryWaits::interrupted(Process& process) {
  threads_.progressed();
  wake_spinning(process);
}

// The look begins at its time in the loop, which may lie before the present time; the look's end lies after it.
void MemoryWaits::continue_loop(Thread& thread) {
  ThreadSlot& slot = slot_of(thread);
  const auto look = thread.loop->first_look(now() + threads_.times_of(*thread.process).detect);
  slot.now = std::uint64_t(look.begins.ps);
  thread.idle_since = look.begins;
  slot.argument[2] = look.index;
  slot.value = thread.loop->only_stores ? 1 : 0;
  thread.looked_again = thread.loop->only_stores;
}

// Simulated time has reached the thread's look. A look counts as a wait until something new is seen.
bool MemoryWaits::look(Thread& thread) {
  const bool looks = slot_of(thread).argument[0] == 0;
  if (looks) threads_.note_vain_wait(thread, ThreadState::polling);
  return true;
}

bool MemoryWaits::spin(Thread& thread) {
  const Process& process = *thread.process;
  // The proof holds for the memory as it was during the thread's turn.
  const bool written = process.memory_writes != thread.seen_memory_writes;
  const bool stored = process.stores != thread.seen_stores;
  if (slot_of(thread).argument[1] != 0) return park(thread);
  if (stored && !written) thread.looked_again = true;
  slot_of(thread).value = stored && !written ? 1 : 0;
  if (written || stored) return true;
  threads_.wait(thread, ThreadState::spinning, std::nullopt);
  return false;
}

// For a loop of looks. EAGAIN: memory changed during the proved round, and the thread must look itself.
bool MemoryWaits::park(Thread& thread) {
  const Process& process = *thread.process;
  ThreadSlot& slot = slot_of(thread);
  thread.loop = ParkedLoop::from(slot);
  slot.value = slot.argument[2] = 0;
  if (!thread.loop) return answer(slot, EINVAL);
  const bool written = process.memory_writes != thread.seen_memory_writes;
  if (written || process.stores != thread.seen_stores || slot.argument[4] != thread.changes) {
    thread.loop.reset();
    return answer(slot, EAGAIN);
  }
  threads_.wait(thread, ThreadState::polling, std::nullopt);
  return false;
}

// Wakes threads that spin on memory which this thread may have stored to, in its process and in others of its host. A
// thread that was woken only for such a store and found nothing has stored nothing: two spinning threads do not wake
// each other for ever.
void MemoryWaits::show_stores(Thread& thread) {
  if (stored_nothing(thread)) return;
  const Duration detect = threads_.times_of(*thread.process).detect;
  const Duration seen = clock_of(thread) + detect;
  for (const auto& process : threads_.processes()) {
    if (!process->alive || process->identity().host != thread.process->identity().host) continue;
    ++process->stores;
    for (Thread& other : process->threads) {
      if (other.state == ThreadState::spinning)
        threads_.wait(other, ThreadState::spinning, std::min(other.at.value_or(seen), seen));
      // For a look at this same time, the order of threads decides whether the look comes before this turn or after
      // it.
      if (other.loop) threads_.end_loop(other, now() + detect + (before(other, thread) ? kTick : Duration{}), true);
    }
  }
  thread.seen_stores = thread.process->stores;
}

bool MemoryWaits::stored_nothing(const Thread& thread) {
  const ThreadSlot& slot = slot_of(thread);
  if (!thread.looked_again || slot.call != abi::Call::spin) return false;
  switch (abi::SpinProof(slot.argument[0])) {
    case abi::SpinProof::proved: return false;
    case abi::SpinProof::unmoved: return true;
    case abi::SpinProof::guessed: return slot.acted <= 1;
  }
  return false;
}

}  // namespace rnicsim::sim
