// The lock of a queue. A thread that finds it taken gives way through the port: in simulated time the holder may be
// waiting for its turn, which a thread asleep in the real kernel would never let it have.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "verbs/port/cpu_time.h"

namespace rnicsim::verbs {

// To whoever must act before this thread can go on: the world in simulated time, other threads in real time.
inline void give_way(CpuTime& cpu) {
  cpu.wait_visible();
  std::this_thread::yield();
}

class QueueLock {
 public:
  void lock(CpuTime& cpu) {
    // Behind those that wait: who frees it and takes it again in no time would shut them out.
    if (waiting_.load(std::memory_order_relaxed) == 0 && try_lock()) return;
    do {
      waiting_.fetch_add(1, std::memory_order_relaxed);
      cpu.wait_unlocked();
      std::this_thread::yield();
      waiting_.fetch_sub(1, std::memory_order_relaxed);
    } while (!try_lock());
  }
  // False: somebody has it, perhaps the caller.
  bool try_lock() { return !taken_.test_and_set(std::memory_order_acquire); }
  void unlock(CpuTime& cpu) {
    if (waiting_.load(std::memory_order_relaxed) != 0) cpu.hand_over();
    taken_.clear(std::memory_order_release);
  }

 private:
  std::atomic_flag taken_;
  std::atomic<std::uint32_t> waiting_{0};
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
