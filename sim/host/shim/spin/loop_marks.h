// SPDX-License-Identifier: Apache-2.0
// Breakpoints at the heads of loops that were proved to wait for memory (spin.h). The next thread that comes there is
// checked at once, and not only when the simulator asks for a check. Only the thread that has the turn may set and
// clear them.
#pragma once

#include <cstdint>

namespace rnicsim::clock {

class LoopMark {
 public:
  // The mark at `place`, for a loop of `period` steps; nullptr: the table is full, or the code there cannot be changed.
  static LoopMark* make(std::uintptr_t place, int period);
  // True: the mark is at the return address of a looking function (timed_look.h), and is used once.
  bool is_behind_look() const { return period_ == 0; }
  // The mark that is set at `place`; nullptr: none. An entry alone does not count: a library that was unloaded leaves
  // its entries behind, but its code is gone.
  static LoopMark* at(std::uintptr_t place);
  static bool was_at(std::uintptr_t place) { return of(place) != nullptr; }
  // The program's own byte, whether or not a mark is set there.
  static std::uint8_t byte_at(std::uintptr_t place);

  void set();
  // Restores the program's own byte.
  void clear();

  // A thread that met the mark waits (hit), or does not (miss). After some misses in a row the mark stays clear until
  // another proof.
  void hit() { misses_ = 0; }
  void miss();
  std::uintptr_t place() const { return place_; }
  int period() const { return period_; }

 private:
  static LoopMark* of(std::uintptr_t place);
  void write(std::uint8_t byte) const;

  std::uintptr_t place_ = 0;  // 0: free entry
  int period_ = 0;
  int misses_ = 0;
  std::uint8_t original_ = 0;
};

}  // namespace rnicsim::clock
