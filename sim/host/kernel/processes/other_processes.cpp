// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/processes/other_processes.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

namespace rnicsim::clock {

std::optional<pid_t> find_process(pid_t virtual_pid) {
  if (virtual_pid == pid_t(session()->header().virtual_pid)) return pid_t(raw_call(SYS_getpid));
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr || call(*slot, abi::Call::find_process, {std::uint64_t(virtual_pid), 0}) != 0)
    return std::nullopt;
  return pid_t(slot->value);
}

std::optional<std::uint64_t> cpu_time_of_another(pid_t virtual_pid) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr || call(*slot, abi::Call::find_process, {std::uint64_t(virtual_pid), 0}) != 0)
    return std::nullopt;
  return slot->argument[2];
}

pid_t number_of_process(pid_t real_pid) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr || call(*slot, abi::Call::find_process, {std::uint64_t(real_pid), 1}) != 0) return 0;
  return pid_t(slot->value);
}

}  // namespace rnicsim::clock
