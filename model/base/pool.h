// Objects that are used again and again and stay where they are: what was given back last is taken next.
#pragma once

#include <deque>
#include <utility>

namespace rnicsim {

template <class Object>
class Pool {
 public:
  // Its value is what was left there: for the caller to fill.
  Object& take() {
    if (idle_ == nullptr) return add();
    return *std::exchange(idle_, idle_->next);
  }
  void give_back(Object& object) {
    auto& place = static_cast<Place&>(object);
    place.next = std::exchange(idle_, &place);
  }
  // Those that are in use are gone too.
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
