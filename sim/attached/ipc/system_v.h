// SPDX-License-Identifier: Apache-2.0
// The calls of programs to System V semaphores and message queues. Each host has objects of its own.
#pragma once

#include <map>
#include <vector>

#include "sim/attached/ipc/message_queues.h"
#include "sim/attached/ipc/semaphores.h"
#include "sim/attached/time/time_keeper.h"

namespace rnicsim::sim {

class SystemV {
 public:
  SystemV(TimeKeeper& keeper, std::size_t hosts, std::uint64_t epoch);
  // True: the call is answered. False: the thread waits.
  bool execute(Thread& thread);
  void process_ended(const Process& process);

 private:
  struct Host {
    Semaphores semaphores;
    MessageQueues queues;
  };
  struct Place {
    Process* process;
    std::uint32_t index;
  };

  IpcCaller caller(const Process& process, std::uint64_t user) const;
  bool operate(Thread& thread, abi::ThreadSlot& slot);
  int control_semaphores(Host& host, const Process& process, abi::ThreadSlot& slot) const;
  int set_values(Semaphores& semaphores, abi::ThreadSlot& slot, const IpcCaller& caller) const;
  bool send(Thread& thread, abi::ThreadSlot& slot);
  bool receive(Thread& thread, abi::ThreadSlot& slot);
  int control_queues(Host& host, const Process& process, abi::ThreadSlot& slot) const;
  // Number for a wait that the thread may begin.
  IpcWait new_wait(const Thread& thread);
  bool wait(Thread& thread, IpcWait wait, std::optional<Duration> until);
  Thread* waiting(IpcWait wait);
  void end_wait(IpcWait wait, int error);

  TimeKeeper& keeper_;
  const std::uint64_t epoch_;
  std::vector<Host> hosts_;
  std::map<IpcWait, Place> waits_;
  IpcWait last_wait_ = 0;
};

}  // namespace rnicsim::sim
