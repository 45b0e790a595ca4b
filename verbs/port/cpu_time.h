// The CPU's time: what a call costs its thread, and how a thread gives way.
#pragma once

#include <array>
#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim {

// A lock of the kind that costs time and guards nothing else: who comes to it first has it first, on the clocks of the
// simulated threads, and only the port knows those. To hand it over takes the longer the more spin on it, as its line
// goes from cache to cache. Times are in picoseconds.
class TimedLock {
 public:
  struct Costs {
    std::uint64_t free, contended, waiting, held;
  };
  // When a thread that comes at `now` has it. Threads come in the order of their clocks.
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
  static constexpr std::uint32_t kMost = 64;  // counted; more wait as these do

  std::uint64_t free_at_ = 0;
  std::array<std::uint64_t, kMost> starts_{};  // when those that wait will have it
  std::uint32_t first_ = 0;
  std::uint32_t waiting_ = 0;
};

class CpuTime {
 public:
  virtual void charge(abi::CpuCost cost, std::uint32_t times = 1) = 0;
  // The caller is done with what the device wrote so far: returns when there may be something new, or some time later.
  virtual void wait_visible() = 0;

  // A look at memory that the device writes, in three steps: `begin_look`, which costs time; if there is nothing,
  // `look`, behind which memory is as the CPU sees it at the thread's time; `end_look`, for what was found may have
  // been visible before the look was over. `site`: the instruction to which the function that the program called
  // returns.
  virtual void begin_look(abi::CpuCost cost) { charge(cost); }
  virtual void look(const void* /*site*/) { wait_visible(); }
  virtual void end_look(bool /*found*/) {}
  // The function does nothing but look, as above. The function takes three arguments at most, and returns `nothing` if
  // it finds nothing.
  virtual void declare_look(const void* /*function*/, int /*nothing*/) {}

  // Another thread of the process holds the lock that the caller wants: returns when the lock may be free, or some time
  // later.
  virtual void wait_unlocked(const void* /*lock*/) { wait_visible(); }
  // The caller is about to free the lock, which others wait for. True: one of them will have it next.
  virtual bool hand_over(const void* /*lock*/) { return false; }

  // So many events are not yet acknowledged: returns when `acknowledged` was called for their count, or some time
  // later.
  // `function`, for people, is what the program called.
  virtual void wait_acknowledged(const void* /*count*/, std::uint32_t /*missing*/, const char* /*function*/) {
    wait_visible();
  }
  virtual void acknowledged(const void* /*count*/) {}

  // The caller's time passes until it has the lock, which it keeps for as long as `held` takes.
  virtual void pass_lock(TimedLock& lock, abi::CpuCost held) = 0;

 protected:
  ~CpuTime() = default;
};

}  // namespace rnicsim
