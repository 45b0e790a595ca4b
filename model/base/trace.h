// Trace points: a block declares one for each kind of event and calls it; with no subscriber that costs one branch.
// Everything that watches a run (counters' audit, capture, waterfall, goldens, lockstep) subscribes here.
#pragma once

#include <functional>
#include <vector>

namespace rnicsim::trace {

template <class Event>
class Point {
 public:
  using Subscriber = std::function<void(const Event&)>;
  void subscribe(Subscriber subscriber) { subscribers_.push_back(std::move(subscriber)); }
  explicit operator bool() const { return !subscribers_.empty(); }
  void operator()(const Event& event) const {
    for (const auto& subscriber : subscribers_) subscriber(event);
  }

 private:
  std::vector<Subscriber> subscribers_;
};

}  // namespace rnicsim::trace
