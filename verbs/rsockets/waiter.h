// SPDX-License-Identifier: Apache-2.0
// Threads that sleep on a socket while other threads use it. A thread that takes completions clears the event on which
// the others sleep, so it wakes them, and they check again.
#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace rnicsim::rsockets {

// An eventfd of one thread, by which other threads wake it.
class Waiter {
 public:
  Waiter();
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // The calling thread's. nullptr with errno set: no descriptor is left.
  static Waiter* of_this_thread();
  // nullptr: the calling thread has never slept.
  static const Waiter* known_of_this_thread();

  int fd() const { return fd_; }
  void wake() const;
  // Clears the wake-up; called after a sleep.
  void quiet() const;

 private:
  int fd_;
};

// The sleeping threads of a socket; protected by the socket's mutex.
class Waiters {
 public:
  void add(Waiter& waiter) { waiters_.push_back(&waiter); }
  // Removes one entry of this waiter.
  void remove(Waiter& waiter) {
    const auto found = std::find(waiters_.begin(), waiters_.end(), &waiter);
    if (found != waiters_.end()) waiters_.erase(found);
  }
  void wake_all() const {
    for (const Waiter* waiter : waiters_) waiter->wake();
  }
  void wake_others() const {
    for (const Waiter* waiter : waiters_) {
      if (waiter != Waiter::known_of_this_thread()) waiter->wake();
    }
  }

 private:
  std::vector<Waiter*> waiters_;
};

// Time that a call polls before it sleeps.
class PollingTime {
 public:
  PollingTime();
  bool over() const;

 private:
  std::chrono::steady_clock::time_point end_;
};

// poll(2). Returns 0 or a positive errno.
int sleep_on(std::vector<pollfd>& descriptors, int timeout_ms);

}  // namespace rnicsim::rsockets
