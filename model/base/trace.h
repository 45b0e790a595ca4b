// SPDX-License-Identifier: Apache-2.0
// Trace points: a block declares one for each kind of event, and calls it. Without a subscriber the call costs one
// branch. All observers of a run (counters' audit, capture, waterfall, golden traces, lockstep) subscribe here.
#pragma once

#include <functional>
#include <memory>
#include <vector>

namespace rnicsim::trace {

template <class Event>
class Point {
 public:
  using Subscriber = std::function<void(const Event&)>;
  void subscribe(Subscriber subscriber) {
    if (!subscribers_) subscribers_ = std::make_unique<std::vector<Subscriber>>();
    subscribers_->push_back(std::move(subscriber));
  }
  explicit operator bool() const { return subscribers_ != nullptr; }
  void operator()(const Event& event) const {
    if (!*this) return;
    for (const auto& subscriber : *subscribers_) subscriber(event);
  }

 private:
  std::unique_ptr<std::vector<Subscriber>> subscribers_;  // a pointer: most of the many points have no subscriber
};

}  // namespace rnicsim::trace
