// SPDX-License-Identifier: Apache-2.0
// A pool of objects with stable addresses: the object that was given back last is taken next.
#pragma once

#include <deque>
#include <utility>

namespace rnicsim {

template <class Object>
class Pool {
 public:
  // The object has the value that its last user left: the caller assigns all of it.
  Object& take() {
    if (idle_ == nullptr) return add();
    return *std::exchange(idle_, idle_->next);
  }
  void give_back(Object& object) {
    auto& place = static_cast<Place&>(object);
    place.next = std::exchange(idle_, &place);
  }
  // Frees all objects, also those in use.
  void clear() {
    idle_ = nullptr;
    places_.clear();
  }

 private:
  struct Place : Object {
    Place* next = nullptr;
  };

  [[gnu::noinline]] Object& add() { return places_.emplace_back(); }

  std::deque<Place> places_;
  Place* idle_ = nullptr;
};

}  // namespace rnicsim
