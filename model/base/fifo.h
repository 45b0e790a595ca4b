// SPDX-License-Identifier: Apache-2.0
// A first-in first-out queue in one ring of memory that grows as needed. Unlike std::deque, the ring allocates no
// memory while large items pass through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace rnicsim {

template <class Item>
class Fifo {
 public:
  Fifo() = default;
  Fifo(Fifo&& other) noexcept { swap(other); }
  Fifo& operator=(Fifo&& other) noexcept {
    Fifo(std::move(other)).swap(*this);
    return *this;
  }

  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  Item& front() { return ring_[head_]; }
  const Item& front() const { return ring_[head_]; }
  Item& back() { return (*this)[count_ - 1]; }
  Item& operator[](std::size_t index) { return ring_[(head_ + index) & mask_]; }
  const Item& operator[](std::size_t index) const { return ring_[(head_ + index) & mask_]; }
  Item& push_back(Item&& item) {
    auto& place = add_back();
    place = std::move(item);
    return place;
  }
  // The new item has the value that its place held before: the caller assigns all of it.
  Item& add_back() {
    if (count_ == mask_ + 1) grow();
    return (*this)[count_++];
  }
  // The item is not destroyed, since its memory is used again: move from front() first if it holds resources. An empty
  // queue starts again at place 0, so that a queue that stays short stays in few cache lines.
  void pop_front() { head_ = --count_ == 0 ? 0 : (head_ + 1) & mask_; }
  void pop_back() { --count_; }
  // Releases the memory of an empty queue.
  void trim() {
    if (count_ == 0) clear();
  }
  void clear() { Fifo().swap(*this); }

  // Iteration from front to back; the loop must neither add nor remove items.
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
  static constexpr std::uint32_t kLeast = 4;

  [[gnu::noinline]] void grow() {
    const auto larger = ring_ ? 2 * count_ : kLeast;
    auto ring = std::make_unique<Item[]>(larger);
    for (std::uint32_t i = 0; i < count_; ++i) ring[i] = std::move((*this)[i]);
    ring_ = std::move(ring);
    mask_ = larger - 1;
    head_ = 0;
  }
  void swap(Fifo& other) {
    std::swap(ring_, other.ring_);
    std::swap(mask_, other.mask_);
    std::swap(head_, other.head_);
    std::swap(count_, other.count_);
  }

  std::unique_ptr<Item[]> ring_;
  std::uint32_t mask_ = ~0u;  // number of places - 1; the number of places is 0 or a power of two
  std::uint32_t head_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace rnicsim
