// The CPU's time: what a call costs its thread, and how a thread gives way.
#pragma once

#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim {

// A lock of the kind that costs time and guards nothing else: who comes to it first has it first, on the clocks of the
// simulated threads, and only the port knows those. Times are in picoseconds.
struct TimedLock {
  struct Costs {
    std::uint64_t free, contended, held;
  };
  // When a thread that comes at `now` has it. Threads come in the order of their clocks.
  std::uint64_t take(std::uint64_t now, const Costs& costs) {
    const std::uint64_t start = now < free_at ? free_at + costs.contended : now + costs.free;
    free_at = start + costs.held;
    return start;
  }

  std::uint64_t free_at = 0;
};

class CpuTime {
 public:
  virtual void charge(abi::CpuCost cost, std::uint32_t times = 1) = 0;
  // The caller found nothing (an empty CQ): returns when there may be something new, or some time later.
  virtual void wait_visible() = 0;
  // Another thread of the process holds what the caller wants: returns when it may be free, or some time later.
  virtual void wait_unlocked() { wait_visible(); }
  // The caller is about to free what others wait for.
  virtual void hand_over() {}
  // The caller's time passes until it has the lock, which it keeps for as long as `held` takes.
  virtual void pass_lock(TimedLock& lock, abi::CpuCost held) = 0;

 protected:
  ~CpuTime() = default;
};

}  // namespace rnicsim
