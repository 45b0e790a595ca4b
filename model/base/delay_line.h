// Items on their way through something that keeps their order: each has the time when it comes out, never before that of
// the one ahead of it. Like an EventQueue, without sorting.
#pragma once

#include <cassert>
#include <utility>

#include "model/base/fifo.h"
#include "model/base/kernel.h"

namespace rnicsim {

template <class Item>
class DelayLine {
 public:
  explicit DelayLine(const char* name) : event_(name) {}

  void push(Duration at, Item&& item) {
    assert(at >= last_);
    last_ = at;
    items_.push_back({at, std::move(item)});
    if (items_.size() == 1) event_.notify(to_sc_time(at - now()));
  }

  // The module's SC_METHOD, sensitive to event(): while (line.pop_due(item)) ...
  bool pop_due(Item& item) {
    if (items_.empty()) return false;
    const auto wait = items_.front().at - now();
    if (wait > Duration{}) {
      event_.notify(to_sc_time(wait));
      return false;
    }
    item = std::move(items_.front().item);
    items_.pop_front();
    return true;
  }

  // What is on its way, from the next to come out to the last.
  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }
  Item& operator[](std::size_t index) { return items_[index].item; }
  Item& back() { return (*this)[size() - 1]; }
  // The last one comes out later than was thought.
  void delay_back(Duration at) {
    last_ = items_[size() - 1].at = at;
    if (size() != 1) return;
    event_.cancel();
    event_.notify(to_sc_time(at - now()));
  }

  const sc_core::sc_event& event() const { return event_; }

  // Forgets everything (device reset).
  void clear() {
    items_.clear();
    event_.cancel();
    last_ = {};
  }

 private:
  struct Entry {
    Duration at;
    Item item{};
  };

  Fifo<Entry> items_;
  Duration last_;
  sc_core::sc_event event_;
};

}  // namespace rnicsim
