// How many misses of a cache are read at a time; the others wait their turn.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

namespace rnicsim::nic {

class MissSlots {
 public:
  explicit MissSlots(std::uint32_t slots) : slots_(slots) {}

  bool free() const { return taken_ < slots_; }
  // True: it began at once. Else it begins when its turn comes.
  template <class Begin>
  bool take(Begin&& begin) {
    if (!free()) {
      waiting_.emplace_back(std::forward<Begin>(begin));
      return false;
    }
    ++taken_;
    begin();
    return true;
  }
  // For the next that waits, if there is one.
  void give_back() {
    if (waiting_.empty()) {
      if (taken_ > 0) --taken_;
      return;
    }
    const auto next = std::move(waiting_.front());
    waiting_.pop_front();
    next();
  }
  void clear() {
    waiting_.clear();
    taken_ = 0;
  }

 private:
  const std::uint32_t slots_;
  std::uint32_t taken_ = 0;
  std::deque<std::function<void()>> waiting_;
};

}  // namespace rnicsim::nic
