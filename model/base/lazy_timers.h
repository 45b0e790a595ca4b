// SPDX-License-Identifier: Apache-2.0
// Lazy timers: each has a deadline and at most one useful event in the queue. When the event comes, the timer has
// expired or the event is queued again for the new deadline. The user of this class stores the timers and finds them by
// key.
#pragma once

#include "model/base/event_queue.h"

namespace rnicsim {

struct LazyTimer {
  Duration deadline = Agenda::kNever;
  Duration event = Agenda::kNever;  // time of the timer's earliest queued event

  bool armed() const { return deadline != Agenda::kNever; }
  void cancel() { deadline = Agenda::kNever; }
};

template <class Key>
class LazyTimers {
 public:
  // `due` is called when events are due and must call look().
  explicit LazyTimers(Alarm::Action due) : queue_(std::move(due)) {}

  void arm(LazyTimer& timer, const Key& key, Duration deadline) {
    timer.deadline = deadline;
    if (timer.event <= deadline) return;
    timer.event = deadline;
    queue_.push(deadline, key);
  }

  // Calls `expired` for each timer whose deadline has come. `find` returns the timer of a key, or nullptr.
  template <class Find, class Expired>
  void look(Find&& find, Expired&& expired) {
    Key key{};
    while (queue_.pop_due(key)) {
      LazyTimer* timer = find(key);
      if (timer == nullptr || timer->event != now()) continue;
      timer->event = Agenda::kNever;
      if (!timer->armed()) continue;
      if (timer->deadline > now()) {
        timer->event = timer->deadline;
        queue_.push(timer->deadline, key);
      } else {
        timer->cancel();
        expired(key);
      }
    }
  }

  void clear() { queue_.clear(); }

 private:
  EventQueue<Key> queue_;
};

}  // namespace rnicsim
