// SPDX-License-Identifier: Apache-2.0
// A typed output of a block. The enclosing module binds the output to a sink, which is called at once for each item.
// The receiver models delays (its event queue). A block knows its outputs and not its neighbours.
#pragma once

#include <cassert>
#include <type_traits>
#include <utility>

#include "model/base/inline_function.h"

namespace rnicsim {

// How an item is passed: a small item by value, another as an rvalue reference, so that the item is built once for the
// whole path.
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
  // Passes a copy, if the caller keeps its item.
  void operator()(const Items&... items) const
      requires(sizeof...(Items) == 1 && (std::is_rvalue_reference_v<Given<Items>> && ...)) {
    sink_(Items(items)...);
  }

 private:
  mutable Callback<void(Given<Items>...)> sink_;
};

}  // namespace rnicsim
