// Where threads are known to wait for memory: a breakpoint at the head of each loop that was proved to be such a wait
// (spin.h), so that the next thread that comes there is looked at at once, not when the simulator asks what it does.
// Whoever has the turn may set and clear them.
#pragma once

#include <cstdint>

namespace rnicsim::clock {

class LoopMark {
 public:
  // For the loop around this place, so many steps long; nullptr: no more room, or no place for one.
  static LoopMark* make(std::uintptr_t place, int period);
  // Behind a call that looks (timed_look.h), where a thread comes once.
  bool is_behind_look() const { return period_ == 0; }
  // Set there; a library that has gone leaves its marks behind, but not what it had in memory.
  static LoopMark* at(std::uintptr_t place);
  static bool was_at(std::uintptr_t place) { return of(place) != nullptr; }
  // Of the program, whether or not one is set there.
  static std::uint8_t byte_at(std::uintptr_t place);

  void set();
  // What stood there can be executed.
  void clear();

  // A thread that met it waits, or does not. After some misses in a row the place stays clear until another proof.
  void hit() { misses_ = 0; }
  void miss();
  std::uintptr_t place() const { return place_; }
  int period() const { return period_; }

 private:
  static LoopMark* of(std::uintptr_t place);
  void write(std::uint8_t byte) const;

  std::uintptr_t place_ = 0;  // 0: nobody's
  int period_ = 0;
  int misses_ = 0;
  std::uint8_t original_ = 0;
};

}  // namespace rnicsim::clock
