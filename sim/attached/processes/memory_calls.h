// SPDX-License-Identifier: Apache-2.0
// Calls about the memory of a process: pins for DMA, pages moved aside, huge pages.
#pragma once

#include <chrono>
#include <vector>

#include "sim/attached/attached_hosts.h"
#include "sim/attached/native/stall_guard.h"
#include "sim/attached/processes/huge_pages.h"
#include "sim/attached/time/time_keeper.h"

namespace rnicsim::sim {

class MemoryCalls {
 public:
  // `writes_at_once`: DMA writes reach the program's memory during its turns, too (real time).
  MemoryCalls(const AttachedHosts& hosts, TimeKeeper& keeper, bool writes_at_once);

  // Connects the address space of the process's present image. Called for every image.
  void equip(Process& process);
  // Calls from pin to huge_pages. True: the call is answered.
  bool execute(Thread& thread, abi::ThreadSlot& slot);

 private:
  // For one access to a program's memory. Long, since the machine may swap.
  static constexpr std::chrono::seconds kStallPatience{5};

  int pin(Process& process, abi::ThreadSlot& slot);
  int unpin(Process& process, abi::ThreadSlot& slot);
  bool set_aside(Thread& thread, abi::ThreadSlot& slot);
  int put_aside(Process& process, abi::ThreadSlot& slot);
  int pages_moved(Process& process, abi::ThreadSlot& slot);
  int huge_pages(Process& process, abi::ThreadSlot& slot);
  ProcessMemory::FirstPinned first_pinned(Process& process) const;
  static void end_stall(int process, int calls);

  const AttachedHosts& hosts_;
  TimeKeeper& keeper_;
  const bool writes_at_once_;
  std::vector<HugePages> huge_pages_;  // by host
  StallGuard stalls_{kStallPatience, &MemoryCalls::end_stall};
};

}  // namespace rnicsim::sim
