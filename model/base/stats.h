// Counters: plain structs of values beside their block, each with one describe(); after - before works by value.
#pragma once

#include <cstdint>
#include <span>

namespace rnicsim {

using Counter = std::uint64_t;

class CounterVisitor {
 public:
  virtual ~CounterVisitor() = default;
  virtual void counter(const char* name, const Counter& value, const char* unit, const char* meaning) = 0;
  // Picoseconds that `units` alike units were busy, of all together; `each`: of each of them, where work has its unit.
  virtual void busy(const char* name, const Counter& value, std::uint32_t /*units*/, const char* meaning,
                    std::span<const Counter> /*each*/ = {}) {
    counter(name, value, "ps", meaning);
  }
  // Picoseconds that things waited here, of all together; `name` ends in _wait, beside a _busy.
  virtual void waited(const char* name, const Counter& value, const char* meaning) {
    counter(name, value, "ps", meaning);
  }
  // The most that there ever was: of two times, the later one's says it, not the difference.
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
