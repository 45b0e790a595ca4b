// Timers kept lazily: a deadline each, and at most one event of it on its way, which looks at the deadline when it
// comes.
// Whose they are keeps them, by key.
#pragma once

#include "model/base/event_queue.h"

namespace rnicsim {

struct LazyTimer {
  Duration deadline = Agenda::kNever;
  Duration event = Agenda::kNever;     // when the earliest event of it comes

  bool armed() const { return deadline != Agenda::kNever; }
  void cancel() { deadline = Agenda::kNever; }
};

template <class Key>
class LazyTimers {
 public:
  // Called when a timer is to be looked at: look().
  explicit LazyTimers(Alarm::Action due) : queue_(std::move(due)) {}

  void arm(LazyTimer& timer, const Key& key, Duration deadline) {
    timer.deadline = deadline;
    if (timer.event <= deadline) return;
    timer.event = deadline;
    queue_.push(deadline, key);
  }

  // `find` gives a key's timer, or nullptr.
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
