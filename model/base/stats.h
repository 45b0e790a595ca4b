// SPDX-License-Identifier: Apache-2.0
// Counters: plain structs of values beside their block, each with one describe(). A copy is a snapshot, so two
// snapshots can be subtracted.
#pragma once

#include <cstdint>
#include <span>

namespace rnicsim {

using Counter = std::uint64_t;

class CounterVisitor {
 public:
  virtual ~CounterVisitor() = default;
  virtual void counter(const char* name, const Counter& value, const char* unit, const char* meaning) = 0;
  // Busy time in ps, summed over `units` equal units. `each`: the time of each unit, if work is bound to a unit.
  virtual void busy(const char* name, const Counter& value, std::uint32_t /*units*/, const char* meaning,
                    std::span<const Counter> /*each*/ = {}) {
    counter(name, value, "ps", meaning);
  }
  // Waiting time in ps, summed over all items; `name` ends in _wait and goes with a _busy counter.
  virtual void waited(const char* name, const Counter& value, const char* meaning) {
    counter(name, value, "ps", meaning);
  }
  // A maximum since the start. An interval's value is the later snapshot's, not the difference.
  virtual void most(const char* name, const Counter& value, const char* unit, const char* meaning) {
    counter(name, value, unit, meaning);
  }

  template <class Counters>
  void group(const char* name, const Counters& counters) {
    enter(name);
    counters.describe(*this);
    leave();
  }

 protected:
  virtual void enter(const char* name) = 0;
  virtual void leave() = 0;
};

}  // namespace rnicsim
