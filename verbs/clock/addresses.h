// Threads that wait for one another: on an address, in simulated time.
#pragma once

#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// Who may wait and wake: the threads of a process, or of all that have the memory mapped.
enum class Sharing : std::uint64_t { process = 0, host = 1 };
constexpr Sharing sharing_of(bool shared) { return shared ? Sharing::host : Sharing::process; }

inline constexpr std::uint64_t kEveryone = ~0ull;

// What the thread waits for, for people, as long as the object lives.
class Reason {
 public:
  Reason(abi::ThreadSlot& slot, const char* text);
  ~Reason();
  Reason(const Reason&) = delete;
  Reason& operator=(const Reason&) = delete;

 private:
  abi::ThreadSlot& slot_;
};

// Until somebody wakes `address`; 0 or ETIMEDOUT. Between the look that made the caller wait and this no other thread
// runs.
int wait_on(abi::ThreadSlot& slot, const void* address, std::uint64_t deadline, Sharing sharing = Sharing::process);
// At most so many, first come first woken; returns how many.
std::uint64_t wake(abi::ThreadSlot& slot, const void* address, std::uint64_t most, Sharing sharing = Sharing::process);
// One thread of the process, which does not sleep: it goes on as soon as a CPU sees what changed. False: none waits.
bool wake_spinning(abi::ThreadSlot& slot, const void* address);

// A thread that was woken for a lock again and again and always found it taken: others let it go first. Those of the
// process are known in it; made, asked for and ended in the thread's turn.
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

// In a new process there are none but its own thread.
void forget_other_waiters();

}  // namespace rnicsim::clock
