// Threads that sleep on a socket, and the others that may do their work meanwhile. Whoever takes completions from a
// queue takes the news from those who sleep on its descriptor: so it wakes them, and they look again.
#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace rnicsim::rsockets {

// A descriptor of one thread by which others wake it.
class Waiter {
 public:
  Waiter();
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // The calling thread's; nothing if there is no descriptor left (errno).
  static Waiter* of_this_thread();
  // Nothing: it never slept.
  static const Waiter* known_of_this_thread();

  int fd() const { return fd_; }
  void wake() const;
  // After a sleep.
  void quiet() const;

 private:
  int fd_;
};

// Guarded by the socket's mutex.
class Waiters {
 public:
  void add(Waiter& waiter) { waiters_.push_back(&waiter); }
  // One entry of it.
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

// The time that a call may spend looking before it sleeps.
class PollingTime {
 public:
  PollingTime();
  bool over() const;

 private:
  std::chrono::steady_clock::time_point end_;
};

// poll(2); 0 or a positive errno.
int sleep_on(std::vector<pollfd>& descriptors, int timeout_ms);

}  // namespace rnicsim::rsockets
