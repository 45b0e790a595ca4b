// SPDX-License-Identifier: Apache-2.0
// A module's pending events: a heap of (time, sequence) and one alarm. Events of equal time leave in the order in which
// they were pushed.
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
  // `due` is called when an event is due: while (queue.pop_due(item)) ...
  explicit EventQueue(Alarm::Action due) : alarm_(std::move(due)) {}

  // `at` is absolute and not in the past.
  void push(Duration at, Item item) {
    if (size_ == items_.size()) add_place();
    const auto place = heap_[size_].place;
    items_[place] = std::move(item);
    heap_[size_++] = {at, sequence_++, place};
    std::push_heap(heap_.begin(), end(), later);
    if (heap_.front().sequence == sequence_ - 1) arm();
  }

  bool pop_due(Item& item) {
    if (size_ == 0) return false;
    if (heap_.front().at > now()) {
      arm();
      return false;
    }
    return pop(item);
  }

  // Pops the first event, due or not.
  bool pop(Item& item) {
    if (size_ == 0) return false;
    std::pop_heap(heap_.begin(), end(), later);
    item = std::move(items_[heap_[--size_].place]);
    return true;
  }

  bool empty() const { return size_ == 0; }
  Duration next() const { return heap_.front().at; }

  // Drops all events (device reset).
  void clear() {
    heap_.clear();
    items_.clear();
    size_ = 0;
    alarm_.disarm();
  }

 private:
  struct Entry {
    Duration at;
    std::uint64_t sequence;
    std::uint32_t place;  // index of the item in items_
  };
  static bool later(const Entry& a, const Entry& b) { return a.at != b.at ? a.at > b.at : a.sequence > b.sequence; }
  auto end() { return heap_.begin() + static_cast<std::ptrdiff_t>(size_); }
  void arm() { alarm_.arm(heap_.front().at); }
  [[gnu::noinline]] void add_place() {
    heap_.push_back({.at = {}, .sequence = 0, .place = static_cast<std::uint32_t>(items_.size())});
    items_.emplace_back();
  }

  std::vector<Entry> heap_;  // the heap, then an entry for each free place
  std::vector<Item> items_;  // items do not move when the heap is sorted
  std::size_t size_ = 0;     // entries of the heap
  std::uint64_t sequence_ = 0;
  Alarm alarm_;
};

}  // namespace rnicsim
