// SPDX-License-Identifier: Apache-2.0
// Waits of threads for memory to change: a device or another thread of the host stores there.
#pragma once

#include <cstdint>

#include "sim/attached/time/thread_scheduler.h"

namespace rnicsim::sim {

class MemoryWaits {
 public:
  explicit MemoryWaits(ThreadScheduler& threads) : threads_(threads) {}

  // --- Called by the device models.
  void written(Process& process, std::uint64_t address, std::uint64_t bytes);  // by DMA
  void interrupted(Process& process);

  // --- Calls. True: the call is answered.
  bool look(Thread& thread);
  bool spin(Thread& thread);

  // --- Turns.
  void continue_loop(Thread& thread);
  void show_stores(Thread& thread);

 private:
  bool park(Thread& thread);
  void wake_spinning(Process& process);
  static bool stored_nothing(const Thread& thread);

  ThreadScheduler& threads_;
};

}  // namespace rnicsim::sim
