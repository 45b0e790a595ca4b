// SPDX-License-Identifier: Apache-2.0
// Watches accesses to the memory of other processes. An access may never end: a page served by a userfaultfd or a
// user's file system waits for the process that serves it, and only SIGKILL ends that wait.
//
// An access counts as stalled only when its thread has been in a single wait of the kernel for the whole time. A
// thread that lacks a processor, computes, pages, or is stopped by a debugger may take as long, but its access will
// end.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace rnicsim::sim {

class StallGuard {
 public:
  // Called in the guard's own thread, with the pidfd of the accessed process, when a wait is longer than `patience`,
  // and again each time the same wait has lasted that long once more. `calls` counts from 1.
  using OnStall = std::function<void(int process, int calls)>;
  StallGuard(std::chrono::milliseconds patience, OnStall on_stall);
  ~StallGuard();
  StallGuard(const StallGuard&) = delete;
  StallGuard& operator=(const StallGuard&) = delete;

  // The access is under way while the object lives. One at a time.
  class Access {
   public:
    Access(StallGuard* guard, int process) : guard_(guard) {
      if (guard_ == nullptr) return;
      guard_->process_.store(process, std::memory_order_relaxed);
      guard_->accessing_.store(this_thread(), std::memory_order_relaxed);
      guard_->step();
    }
    ~Access() {
      if (guard_ != nullptr) guard_->step();
    }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    StallGuard* guard_;
  };

 private:
  static pid_t this_thread();
  void step() { serial_.store(serial_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
  void watch();

  const std::chrono::milliseconds patience_;
  const OnStall on_stall_;
  std::atomic<int> process_{-1};
  std::atomic<pid_t> accessing_{0};       // thread that makes the access
  std::atomic<std::uint64_t> serial_{0};  // odd: an access is under way
  std::mutex lock_;
  std::condition_variable ending_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace rnicsim::sim
