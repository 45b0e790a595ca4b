// SPDX-License-Identifier: Apache-2.0
// Items in a line that keeps their order: each item has a time at which it leaves, not before the time of the item
// ahead. Like an EventQueue, without sorting.
#pragma once

#include <cassert>
#include <utility>

#include "model/base/agenda.h"
#include "model/base/fifo.h"
#include "model/base/kernel.h"

namespace rnicsim {

template <class Item>
class DelayLine {
 public:
  // `due` is called when an item is due: while (line.pop_due(item)) ...
  explicit DelayLine(Alarm::Action due) : alarm_(std::move(due)) {}

  void push(Duration at, Item&& item) {
    assert(at >= last_);
    last_ = at;
    auto& entry = items_.add_back();
    entry.at = at;
    entry.item = std::move(item);
    if (items_.size() == 1) alarm_.arm(at);
  }

  bool pop_due(Item& item) {
    if (items_.empty()) return false;
    if (items_.front().at > now()) {
      alarm_.arm(items_.front().at);
      return false;
    }
    item = std::move(items_.front().item);
    items_.pop_front();
    return true;
  }

  // Items in the line, from the next one that leaves to the last.
  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }
  Item& operator[](std::size_t index) { return items_[index].item; }
  const Item& front() const { return items_.front().item; }
  Duration next() const { return items_.empty() ? Agenda::kNever : items_.front().at; }
  Item& back() { return (*this)[size() - 1]; }
  // Delays the last item until `at`, which is not before its old time.
  void delay_back(Duration at) {
    last_ = items_[size() - 1].at = at;
    if (size() == 1) alarm_.arm(at);
  }

  // Drops all items (device reset).
  void clear() {
    items_.clear();
    alarm_.disarm();
    last_ = {};
  }

 private:
  struct Entry {
    Duration at;
    Item item{};
  };

  Fifo<Entry> items_;
  Duration last_;
  Alarm alarm_;
};

}  // namespace rnicsim
