// SPDX-License-Identifier: Apache-2.0
// Simulated CPU time: the cost of a thread's calls, and the waits of a thread.
#pragma once

#include <array>
#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim {

// A lock that only costs simulated time and protects no data. Threads get it in the order of their simulated clocks,
// which only the port knows. A handover takes longer the more threads spin on the lock, since its cache line moves
// between caches. Times are in picoseconds.
class TimedLock {
 public:
  struct Costs {
    std::uint64_t free, contended, waiting, held;
  };
  // Time at which a thread that arrives at `now` gets the lock. Calls must be in the order of the threads' clocks.
  std::uint64_t take(std::uint64_t now, const Costs& costs) {
    while (waiting_ != 0 && starts_[first_] <= now) {
      first_ = (first_ + 1) % kMost;
      --waiting_;
    }
    const bool waits = now < free_at_;
    const std::uint64_t start = waits ? free_at_ + costs.contended + waiting_ * costs.waiting : now + costs.free;
    if (waits && waiting_ < kMost) starts_[(first_ + waiting_++) % kMost] = start;
    free_at_ = start + costs.held;
    return start;
  }

 private:
  static constexpr std::uint32_t kMost = 64;  // waiting threads that are counted; the cost grows no further beyond that

  std::uint64_t free_at_ = 0;
  std::array<std::uint64_t, kMost> starts_{};  // times at which the waiting threads get the lock
  std::uint32_t first_ = 0;
  std::uint32_t waiting_ = 0;
};

class CpuTime {
 public:
  virtual void charge(abi::CpuCost cost, std::uint32_t times = 1) = 0;
  // The caller has handled all data that the device wrote so far. Returns when there may be new data, or some time
  // later.
  virtual void wait_visible() = 0;

  // A look: a check of memory that the device writes. It has three steps. begin_look() charges its cost. If the caller
  // then finds nothing, look() brings memory to the state that the CPU sees at the thread's time. end_look() is called
  // last, because the data found may have been visible before the end of the look. `site`: return address of the
  // program's call.
  virtual void begin_look(abi::CpuCost cost) { charge(cost); }
  virtual void look(const void* /*site*/) { wait_visible(); }
  virtual void end_look(bool /*found*/) {}
  // Declares a function that only makes a look. `function` has at most three arguments, and returns `nothing` if it
  // found nothing.
  virtual void declare_look(const void* /*function*/, int /*nothing*/) {}

  // Another thread of the process holds the lock. Returns when the lock may be free, or some time later.
  virtual void wait_unlocked(const void* /*lock*/) { wait_visible(); }
  // The caller is about to release a lock for which others wait. True: a waiting thread gets the lock next.
  virtual bool hand_over(const void* /*lock*/) { return false; }

  // `missing` events are not acknowledged. Returns after acknowledged() was called for the same `count`, or some time
  // later. `function`: name of the program's call, for messages.
  virtual void wait_acknowledged(const void* /*count*/, std::uint32_t /*missing*/, const char* /*function*/) {
    wait_visible();
  }
  virtual void acknowledged(const void* /*count*/) {}

  // Advances the caller's time until the caller has the lock, which is then held for the time `held`.
  virtual void pass_lock(TimedLock& lock, abi::CpuCost held) = 0;

 protected:
  ~CpuTime() = default;
};

}  // namespace rnicsim
