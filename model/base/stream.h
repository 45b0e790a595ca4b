// A typed output of a block: what is put into it arrives at whatever the enclosing module bound it to, at once.
// Time is the receiver's affair (its event queue). A block knows its outputs and never its neighbours.
#pragma once

#include <cassert>
#include <type_traits>
#include <utility>

#include "model/base/inline_function.h"

namespace rnicsim {

// How an item is handed on: a small one by value, another by reference to what its giver gives away, so that it is made
// once however far it goes.
template <class Item>
using Given = std::conditional_t<std::is_trivially_copyable_v<Item> && sizeof(Item) <= 2 * sizeof(void*), Item, Item&&>;

template <class... Items>
class Output {
 public:
  template <class Sink>
  void bind(Sink&& sink) {
    assert(!sink_ && "bound twice");
    sink_ = std::forward<Sink>(sink);
  }
  void operator()(Given<Items>... items) const { sink_(std::forward<Given<Items>>(items)...); }
  // A copy of one that its giver keeps.
  void operator()(const Items&... items) const
    requires(sizeof...(Items) == 1 && (std::is_rvalue_reference_v<Given<Items>> && ...))
  {
    sink_(Items(items)...);
  }

 private:
  mutable Callback<void(Given<Items>...)> sink_;
};

}  // namespace rnicsim
