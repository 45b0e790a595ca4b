// SPDX-License-Identifier: Apache-2.0
// Waits on addresses and wakes them in simulated time. Locks, condition variables and futexes use this.
#pragma once

#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// Threads that a wait or a wake reaches: those of this process, or those of all processes that map the memory.
enum class Sharing : std::uint64_t { process = 0, host = 1 };
constexpr Sharing sharing_of(bool shared) { return shared ? Sharing::host : Sharing::process; }

inline constexpr std::uint64_t kEveryone = ~0ull;

// Names the cause of the thread's wait, for the simulator's messages to people, while the object lives.
class Reason {
 public:
  Reason(abi::ThreadSlot& slot, const char* text);
  ~Reason();
  Reason(const Reason&) = delete;
  Reason& operator=(const Reason&) = delete;

 private:
  abi::ThreadSlot& slot_;
};

// Waits until wake() on `address` or until `deadline` (absolute, in ps). Returns 0, EINTR or ETIMEDOUT. No other thread
// runs between the caller's check of the address and this wait.
int wait_on(abi::ThreadSlot& slot, const void* address, std::uint64_t deadline, Sharing sharing = Sharing::process);
// Wakes at most `most` waiters, in the order in which they came. Returns how many.
std::uint64_t wake(abi::ThreadSlot& slot, const void* address, std::uint64_t most, Sharing sharing = Sharing::process);
// Wakes one waiter of the process that spins instead of sleeping: the waiter continues after CpuCost::detect. False:
// none.
bool wake_spinning(abi::ThreadSlot& slot, const void* address);

// A thread that was woken for a lock several times and always found it taken: while the object lives, other threads of
// the process let that thread take the lock first. Only the thread that has the turn makes, queries and ends one.
class Starving {
 public:
  explicit Starving(const void* address);
  ~Starving();
  Starving(const Starving&) = delete;
  Starving& operator=(const Starving&) = delete;
  static bool any_at(const void* address);

 private:
  const void* const address_;
  Starving* next_;
};

// In a forked child: forgets all waiters, because the forking thread is its only thread.
void forget_other_waiters();

}  // namespace rnicsim::clock
