// SPDX-License-Identifier: Apache-2.0
// Calls of attached processes to the devices of their simulated host: the hosts' kernel agents execute them.
#pragma once

#include "sim/attached/attached_hosts.h"
#include "sim/attached/descriptor_account.h"
#include "sim/attached/time/time_keeper.h"

namespace rnicsim::sim {

class DeviceCalls {
 public:
  DeviceCalls(const AttachedHosts& hosts, TimeKeeper& keeper, DescriptorAccount& descriptors)
      : hosts_(hosts), keeper_(keeper), descriptors_(descriptors) {}

  // Calls from alloc_pd to mmio_read. True: the call is answered.
  bool execute(Thread& thread, abi::ThreadSlot& slot);
  void mmio_write(Process& process, const abi::MmioWrite& write);
  void milestone(Process& process, const abi::Milestone& milestone);

 private:
  // --- device_objects.cpp
  bool pd_or_uar_call(Thread& thread, abi::ThreadSlot& slot);
  bool context_call(Thread& thread, abi::ThreadSlot& slot);
  bool new_context(Thread& thread, abi::ThreadSlot& slot);
  bool xrc_domain_call(Thread& thread, abi::ThreadSlot& slot);
  int open_domain(Thread& thread, abi::ThreadSlot& slot);
  bool device_memory_call(Thread& thread, abi::ThreadSlot& slot);

  // --- device_calls.cpp
  bool device_call(Thread& thread, abi::ThreadSlot& slot);
  bool make_present(Thread& thread, abi::ThreadSlot& slot);
  bool resolve_path(Thread& thread, abi::ThreadSlot& slot);
  bool command(Thread& thread, abi::ThreadSlot& slot);
  bool open_channel(Thread& thread, abi::ThreadSlot& slot);
  bool await_event(Thread& thread, abi::ThreadSlot& slot);
  bool mmio_read(Thread& thread, abi::ThreadSlot& slot);
  // For calls whose device number execute() has checked.
  host::KernelAgent& agent_of(const Thread& thread) const {
    return *hosts_.agent_of(*thread.process, slot_of(thread).device);
  }

  const AttachedHosts& hosts_;
  TimeKeeper& keeper_;
  DescriptorAccount& descriptors_;
};

}  // namespace rnicsim::sim
