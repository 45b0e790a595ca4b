// A module's queue of things to come: a heap of (time, sequence) and one alarm. Equal times come out in the order they
// went in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/base/agenda.h"
#include "model/base/kernel.h"

namespace rnicsim {

template <class Item>
class EventQueue {
 public:
  // Called when something is due: while (queue.pop_due(item)) ...
  explicit EventQueue(Alarm::Action due) : alarm_(std::move(due)) {}

  // `at` is absolute and not in the past.
  void push(Duration at, Item item) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(items_.size()));
      items_.emplace_back();
    }
    const auto place = free_.back();
    free_.pop_back();
    items_[place] = std::move(item);
    heap_.push_back({at, sequence_++, place});
    std::push_heap(heap_.begin(), heap_.end(), later);
    if (heap_.front().sequence == sequence_ - 1) arm();
  }

  bool pop_due(Item& item) {
    if (heap_.empty()) return false;
    if (heap_.front().at > now()) {
      arm();
      return false;
    }
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const auto place = heap_.back().place;
    item = std::move(items_[place]);
    free_.push_back(place);
    heap_.pop_back();
    return true;
  }

  bool empty() const { return heap_.empty(); }
  Duration next() const { return heap_.front().at; }

  // Forgets everything (device reset).
  void clear() {
    heap_.clear();
    items_.clear();
    free_.clear();
    alarm_.disarm();
  }

 private:
  struct Entry {
    Duration at;
    std::uint64_t sequence;
    std::uint32_t place;        // of its item
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
  }
  void arm() { alarm_.arm(heap_.front().at); }

  std::vector<Entry> heap_;
  std::vector<Item> items_;     // which stay where they are as the heap moves
  std::vector<std::uint32_t> free_;
  std::uint64_t sequence_ = 0;
  Alarm alarm_;
};

}  // namespace rnicsim
