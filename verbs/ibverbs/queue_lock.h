// SPDX-License-Identifier: Apache-2.0
// Lock of a queue. A thread that waits for it gives its turn back through the port: in simulated time the holder may
// need the turn to continue, and would never get it from a thread that sleeps in the real kernel.
#pragma once

#include <atomic>
#include <cstdint>

#include "verbs/port/cpu_time.h"

namespace rnicsim::verbs {

class QueueLock {
 public:
  void lock(CpuTime& cpu) {
    // A lock that was handed to a waiting thread is left to it: otherwise a thread that unlocks and locks again could
    // keep the others out.
    if (!handed_.load(std::memory_order_relaxed) && try_lock()) return;
    do {
      waiting_.fetch_add(1, std::memory_order_relaxed);
      cpu.wait_unlocked(this);
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      handed_.store(false, std::memory_order_relaxed);
    } while (!try_lock());
  }
  // False: a thread holds the lock, possibly the caller.
  bool try_lock() { return !taken_.test_and_set(std::memory_order_acquire); }
  void unlock(CpuTime& cpu) {
    if (waiting_.load(std::memory_order_relaxed) != 0) handed_.store(cpu.hand_over(this), std::memory_order_relaxed);
    taken_.clear(std::memory_order_release);
  }

 private:
  std::atomic_flag taken_;
  std::atomic<std::uint32_t> waiting_{0};
  std::atomic<bool> handed_{false};  // given to a waiting thread that has not taken it yet
};

class QueueGuard {
 public:
  QueueGuard(QueueLock& lock, CpuTime& cpu) : lock_(lock), cpu_(cpu) { lock_.lock(cpu); }
  ~QueueGuard() { lock_.unlock(cpu_); }
  QueueGuard(const QueueGuard&) = delete;
  QueueGuard& operator=(const QueueGuard&) = delete;

 private:
  QueueLock& lock_;
  CpuTime& cpu_;
};

}  // namespace rnicsim::verbs
