// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/processes/memory_calls.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "model/host/log.h"
#include "model/host/memory/page_faults.h"

namespace rnicsim::sim {
namespace {

using abi::Call;
using abi::SetAside;
using abi::ThreadSlot;

}  // namespace

MemoryCalls::MemoryCalls(const AttachedHosts& hosts, TimeKeeper& keeper, bool writes_at_once)
    : hosts_(hosts), keeper_(keeper), writes_at_once_(writes_at_once) {
  for (const auto& host : hosts.all()) huge_pages_.emplace_back(host.params->huge_pages);
}

ProcessMemory::FirstPinned MemoryCalls::first_pinned(Process& process) const {
  return [this, &process](const ProcessMemory::Range& range) -> std::optional<ProcessMemory::Range> {
    const auto found =
        hosts_.of(process).agents.front()->root_complex().iommu().first_pinned(process.pasid, range.begin, range.bytes);
    return found ? std::optional(ProcessMemory::Range{found->first, found->second}) : std::nullopt;
  };
}

void MemoryCalls::equip(Process& process) {
  ProcessMemory& memory = process.address_space();
  memory.guard(stalls_);
  memory.join(keeper_.turns_of(process.identity().host));
  memory.write_at_once(writes_at_once_);
  memory.first_pinned = first_pinned(process);
  memory.lost_write = [&process, this](std::uint64_t address, std::uint64_t bytes) {
    hosts_.of(process).kernel->page_faults().withdraw(process.pasid, address, bytes, {});
    host::log_error(fmt::format("{}: {}: the device wrote {} bytes at {:#x}, which the program has unmapped",
                                hosts_.of(process).name, process.label(), bytes, address));
    hosts_.of(process).agents.front()->root_complex().iommu().lost_write(process.pasid, address, bytes);
  };
}

// The mappings are read once, at the registration: pinned memory does not change.
int MemoryCalls::pin(Process& process, ThreadSlot& slot) {
  const HostServices& host = hosts_.of(process);
  const std::uint64_t address = slot.argument[0];
  const std::uint64_t bytes = slot.argument[1];
  if (address + bytes < address) return EINVAL;
  if (!is_user_range(address, bytes)) return EFAULT;
  slot.value = address;
  if (bytes == 0) return 0;
  ProcessMemory& memory = process.address_space();
  const std::uint64_t bus_address = memory.bus_address_for(address, bytes);
  if (const int error = host.kernel->pin(process.pasid, bus_address, bytes, slot.argument[2] != 0)) {
    std::vector<ProcessMemory::Range> nothing_aside;
    memory.unpinned({bus_address, bytes}, first_pinned(process), nothing_aside);
    return error;
  }
  host.kernel->back(process.pasid, bus_address, bytes, host.params->page_size);
  for (const auto& [begin, end, page] :
       huge_pages_[process.identity().host].mappings(process.identity().pid, address, bytes))
    host.kernel->back(process.pasid, bus_address + (begin - address), end - begin, page);
  slot.value = bus_address;
  return 0;
}

int MemoryCalls::unpin(Process& process, ThreadSlot& slot) {
  const ProcessMemory::Range range{slot.argument[0], slot.argument[1]};
  slot.value = 0;
  if (const int error =
          hosts_.of(process).kernel->unpin(process.pasid, range.begin, range.bytes, slot.argument[2] != 0))
    return error;
  std::vector<ProcessMemory::Range> free;
  process.address_space().unpinned(range, first_pinned(process), free);
  // Ranges for which the output has no room stay mapped; their addresses are not used again.
  slot.value = std::min(free.size(), sizeof slot.output / (sizeof(abi::AsideRange)));
  for (std::size_t i = 0; i < slot.value; ++i) {
    const abi::AsideRange aside{free[i].begin, free[i].bytes};
    std::memcpy(slot.output + i * sizeof aside, &aside, sizeof aside);
  }
  return 0;
}

// First withdraws pages of on-demand regions; the thread waits for that.
bool MemoryCalls::set_aside(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  if (!is_user_range(slot.argument[0], slot.argument[1])) return answer(slot, ENOENT);
  const bool detached = SetAside(slot.argument[2]) == SetAside::detached;
  const std::uint64_t bytes =
      detached ? process.address_space().bytes_of_object_at(slot.argument[0]) : std::uint64_t(slot.argument[1]);
  const auto waiting = waiting_thread(thread, ThreadState::awaiting_device);
  const auto withdrawn = [this, waiting] {
    if (Thread* thread = waiting())
      keeper_.threads().resume(*thread, now(), put_aside(*thread->process, slot_of(*thread)));
  };
  host::PageFaults& faults = hosts_.of(process).kernel->page_faults();
  if (!faults.withdraw(process.pasid, slot.argument[0], bytes, withdrawn))
    return answer(slot, put_aside(process, slot));
  keeper_.threads().wait(thread, ThreadState::awaiting_device, std::nullopt);
  return false;
}

// Then moves pinned pages aside.
int MemoryCalls::put_aside(Process& process, ThreadSlot& slot) {
  ProcessMemory& memory = process.address_space();
  const auto how = SetAside(slot.argument[2]);
  if (how == SetAside::moved) return ENOENT;
  ProcessMemory::Range range{slot.argument[0], slot.argument[1]};
  if (how == SetAside::detached) range.bytes = memory.bytes_of_object_at(range.begin);
  const auto pages = memory.first_pinned_pages(range, first_pinned(process), how == SetAside::dropped);
  if (!pages) return ENOENT;
  slot.value = pages->begin;
  slot.argument[1] = pages->bytes;
  slot.argument[2] = memory.place_aside(*pages);
  memory.move(*pages, slot.argument[2], first_pinned(process));
  return 0;
}

int MemoryCalls::pages_moved(Process& process, ThreadSlot& slot) {
  const std::uint64_t bytes = slot.argument[1];
  if (!is_user_range(slot.argument[0], bytes) || !is_user_range(slot.argument[2], bytes)) return EINVAL;
  process.address_space().move({slot.argument[0], bytes}, slot.argument[2], first_pinned(process));
  return 0;
}

int MemoryCalls::huge_pages(Process& process, ThreadSlot& slot) {
  HugePages& pages = huge_pages_[process.identity().host];
  if (slot.argument[0] == 1) pages.add_segment(static_cast<int>(slot.argument[1]));
  std::vector<pid_t> processes;
  for (const auto& other : keeper_.threads().processes())
    if (other->alive && other->identity().host == process.identity().host) processes.push_back(other->identity().pid);
  slot.value = pages.count();
  slot.argument[1] = pages.free(processes);
  return 0;
}

bool MemoryCalls::execute(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  switch (slot.call) {
    case Call::pin: return answer(slot, pin(process, slot));
    case Call::unpin: return answer(slot, unpin(process, slot));
    case Call::set_aside: return set_aside(thread, slot);
    case Call::pages_moved: return answer(slot, pages_moved(process, slot));
    case Call::huge_pages: return answer(slot, huge_pages(process, slot));
    default: return answer(slot, ENOSYS);
  }
}

// An access that does not end stops every host. First the accessed process is killed, then the run is ended.
void MemoryCalls::end_stall(int process, int calls) {
  if (calls == 1) {
    fmt::print(stderr,
               "rnicsim: the device's access to a program's memory does not end (is a page missing that a userfaultfd "
               "or a user's file system must provide?): the program is killed\n");
    ::syscall(SYS_pidfd_send_signal, process, SIGKILL, nullptr, 0);
  } else {
    fmt::print(stderr, "rnicsim: the access still does not end: the run ends\n");
    std::_Exit(EXIT_FAILURE);
  }
}

}  // namespace rnicsim::sim
