// A first-in first-out queue in one ring of memory that grows as needed: unlike a deque it does not go to the heap as
// large items pass through.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace rnicsim {

template <class Item>
class Fifo {
 public:
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  Item& front() { return ring_[head_]; }
  const Item& front() const { return ring_[head_]; }
  Item& back() { return (*this)[count_ - 1]; }
  Item& operator[](std::size_t index) { return ring_[(head_ + index) & (ring_.size() - 1)]; }
  const Item& operator[](std::size_t index) const { return ring_[(head_ + index) & (ring_.size() - 1)]; }
  Item& push_back(Item&& item) {
    auto& place = add_back();
    place = std::move(item);
    return place;
  }
  // Its value is what was left there: for the caller to fill.
  Item& add_back() {
    if (count_ == ring_.size()) grow();
    return (*this)[count_++];
  }
  // The item's memory is used again: move from front() first what must go. A queue that runs empty begins anew, so that
  // one which never holds much stays in few lines of the cache.
  void pop_front() {
    head_ = --count_ == 0 ? 0 : (head_ + 1) & (ring_.size() - 1);
  }
  void pop_back() { --count_; }
  // Gives back the memory of a queue that is empty.
  void trim() {
    if (count_ == 0) std::vector<Item>().swap(ring_);
  }
  void clear() {
    ring_.clear();
    head_ = count_ = 0;
  }

  // In order, for a loop that neither adds nor removes.
  template <class Queue>
  struct Place {
    Queue* queue;
    std::size_t index;
    auto& operator*() const { return (*queue)[index]; }
    Place& operator++() {
      ++index;
      return *this;
    }
    bool operator==(const Place&) const = default;
  };
  Place<Fifo> begin() { return {this, 0}; }
  Place<Fifo> end() { return {this, count_}; }
  Place<const Fifo> begin() const { return {this, 0}; }
  Place<const Fifo> end() const { return {this, count_}; }

 private:
  static constexpr std::size_t kLeast = 4;
  void grow() {
    std::vector<Item> larger(ring_.empty() ? kLeast : 2 * ring_.size());
    for (std::size_t i = 0; i < count_; ++i) larger[i] = std::move((*this)[i]);
    ring_ = std::move(larger);
    head_ = 0;
  }

  std::vector<Item> ring_;  // its size is a power of two
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace rnicsim
