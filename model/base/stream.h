// A typed output of a block: what is put into it arrives at whatever the enclosing module bound it to, at once.
// Time is the receiver's affair (its event queue). A block knows its outputs and never its neighbours.
#pragma once

#include <cassert>
#include <functional>
#include <utility>

namespace rnicsim {

template <class... Items>
class Output {
 public:
  template <class Sink>
  void bind(Sink&& sink) {
    assert(!sink_ && "bound twice");
    sink_ = std::forward<Sink>(sink);
  }
  void operator()(Items... items) const { sink_(std::move(items)...); }

 private:
  std::function<void(Items&&...)> sink_;  // by reference: a large item is made once, however it is handed on
};

}  // namespace rnicsim
