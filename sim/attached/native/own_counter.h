// SPDX-License-Identifier: Apache-2.0
// The time-stamp counter of the simulator's own thread, which faults, as the counter of the programs' threads does.
#pragma once

namespace rnicsim::sim {

// A switch between a thread with the trap and a thread without the trap writes control register CR4. In a virtual
// machine the hypervisor handles the write, which takes longer than the rest of the switch (5 us and more); the
// simulator and a program switch twice in each turn. So the simulator's thread has the trap, too, and the C library
// reads clocks by system calls. Should this thread read the counter nevertheless, its trap ends.
class OwnCounter {
 public:
  OwnCounter();
  ~OwnCounter();
  OwnCounter(const OwnCounter&) = delete;
  OwnCounter& operator=(const OwnCounter&) = delete;
  // The trap was refused. Programs of this process have none, either, and read the real counter.
  bool is_refused() const { return is_refused_; }

 private:
  bool is_refused_ = false;
};

}  // namespace rnicsim::sim
