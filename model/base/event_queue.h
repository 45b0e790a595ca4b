// A module's one queue of things to come: a heap of (time, sequence) and one sc_event. Equal times come out in the order
// they went in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/base/kernel.h"

namespace rnicsim {

template <class Item>
class EventQueue {
 public:
  explicit EventQueue(const char* name) : event_(name) {}

  // `at` is absolute and not in the past.
  void push(Duration at, Item item) {
    heap_.push_back({at, sequence_++, std::move(item)});
    std::push_heap(heap_.begin(), heap_.end(), later);
    if (heap_.front().sequence == sequence_ - 1) arm();
  }

  // The module's SC_METHOD, sensitive to event(): while (queue.pop_due(item)) ...
  bool pop_due(Item& item) {
    if (heap_.empty()) return false;
    if (heap_.front().at > now()) {
      arm();
      return false;
    }
    std::pop_heap(heap_.begin(), heap_.end(), later);
    item = std::move(heap_.back().item);
    heap_.pop_back();
    return true;
  }

  bool empty() const { return heap_.empty(); }
  Duration next() const { return heap_.front().at; }
  const sc_core::sc_event& event() const { return event_; }

  // Forgets everything (device reset).
  void clear() { heap_.clear(); event_.cancel(); }

 private:
  struct Entry {
    Duration at;
    std::uint64_t sequence;
    Item item;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
  }
  void arm() { event_.notify(to_sc_time(heap_.front().at - now())); }

  std::vector<Entry> heap_;
  std::uint64_t sequence_ = 0;
  sc_core::sc_event event_;
};

}  // namespace rnicsim
