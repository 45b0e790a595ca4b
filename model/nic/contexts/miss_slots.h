// SPDX-License-Identifier: Apache-2.0
// Limits the misses of a cache that are read at the same time; others wait in order.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "model/base/fifo.h"
#include "model/base/kernel.h"
#include "model/base/stats.h"
#include "model/nic/contexts/miss_slots_counters.h"

namespace rnicsim::nic {

class MissSlots {
 public:
  // `counters` must outlive this object.
  MissSlots(std::uint32_t slots, MissSlotsCounters& counters) : slots_(slots), counters_(counters) {
    counters_.slots = slots;
  }

  bool free() const { return taken_ < slots_; }
  // True: `begin` ran at once. Else `begin` runs at its turn.
  template <class Begin>
  bool take(Begin&& begin) {
    if (!free()) {
      count();
      waiting_.push_back(std::forward<Begin>(begin));
      return false;
    }
    take();
    begin();
    return true;
  }
  // Takes a slot; one must be free.
  void take() {
    count();
    ++taken_;
  }
  // Passes the slot to the next waiting miss, or frees it.
  void give_back() {
    count();
    if (waiting_.empty()) {
      if (taken_ > 0) --taken_;
      return;
    }
    const auto next = std::move(waiting_.front());
    waiting_.pop_front();
    next();
  }
  void clear() {
    count();
    waiting_.clear();
    taken_ = 0;
  }

 private:
  void count() {
    const auto passed = static_cast<Counter>((now() - counted_).ps);
    counters_.busy_ps += passed * taken_;
    counters_.wait_ps += passed * waiting_.size();
    counted_ = now();
  }

  const std::uint32_t slots_;
  MissSlotsCounters& counters_;
  Duration counted_{};
  std::uint32_t taken_ = 0;
  Fifo<std::function<void()>> waiting_;
};

}  // namespace rnicsim::nic
