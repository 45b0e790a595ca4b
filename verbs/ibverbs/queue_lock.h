// The lock of a queue. A thread that finds it taken gives way through the port: in simulated time the holder may be
// waiting for its turn, which a thread asleep in the real kernel would never let it have.
#pragma once

#include <atomic>
#include <thread>

#include "verbs/port/device_port.h"

namespace rnicsim::verbs {

// To whoever must act before this thread can go on: the world in simulated time, other threads in real time.
inline void give_way(DevicePort& port) {
  port.wait_visible();
  std::this_thread::yield();
}

class QueueLock {
 public:
  void lock(DevicePort& port) {
    while (taken_.test_and_set(std::memory_order_acquire)) give_way(port);
  }
  void unlock() { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_;
};

class QueueGuard {
 public:
  QueueGuard(QueueLock& lock, DevicePort& port) : lock_(lock) { lock_.lock(port); }
  ~QueueGuard() { lock_.unlock(); }
  QueueGuard(const QueueGuard&) = delete;
  QueueGuard& operator=(const QueueGuard&) = delete;

 private:
  QueueLock& lock_;
};

}  // namespace rnicsim::verbs
