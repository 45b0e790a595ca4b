// Counters: plain structs of values beside their block, each with one describe(); after - before works by value.
#pragma once

#include <cstdint>

namespace rnicsim {

using Counter = std::uint64_t;

class CounterVisitor {
 public:
  virtual ~CounterVisitor() = default;
  virtual void counter(const char* name, const Counter& value, const char* unit, const char* meaning) = 0;

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
