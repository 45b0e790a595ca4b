// Items on their way through something that keeps their order: each has the time when it comes out, never before that
// of the one ahead of it. Like an EventQueue, without sorting.
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
  // Called when something comes out: while (line.pop_due(item)) ...
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

  // What is on its way, from the next to come out to the last.
  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }
  Item& operator[](std::size_t index) { return items_[index].item; }
  const Item& front() const { return items_.front().item; }
  Duration next() const { return items_.empty() ? Agenda::kNever : items_.front().at; }
  Item& back() { return (*this)[size() - 1]; }
  // The last one comes out later than was thought.
  void delay_back(Duration at) {
    last_ = items_[size() - 1].at = at;
    if (size() == 1) alarm_.arm(at);
  }

  // Forgets everything (device reset).
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
