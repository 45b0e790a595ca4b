// SPDX-License-Identifier: Apache-2.0
// Calls that make and destroy objects of a device: PDs, UARs, contexts, device memory, XRC domains.

#include <sys/stat.h>

#include <cerrno>

#include "model/abi/device.h"
#include "sim/attached/device/device_calls.h"

namespace rnicsim::sim {

using abi::Call;
using abi::ThreadSlot;

// --- PDs and UARs.

bool DeviceCalls::pd_or_uar_call(Thread& thread, ThreadSlot& slot) {
  const Pasid pasid = thread.process->pasid;
  const auto number = std::uint32_t(slot.argument[0]);
  std::uint32_t given = 0;
  int error = 0;
  host::KernelAgent& kernel = agent_of(thread);
  switch (slot.call) {
    case Call::alloc_pd: error = kernel.alloc_pd(pasid, given); break;
    case Call::dealloc_pd: error = kernel.dealloc_pd(pasid, number); break;
    case Call::alloc_uar: error = kernel.alloc_uar(pasid, given); break;
    default: error = kernel.free_uar(pasid, number); break;
  }
  slot.value = given;
  return answer(slot, error);
}

// --- Contexts.

bool DeviceCalls::context_call(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  host::KernelAgent& kernel = agent_of(thread);
  const auto number = std::uint32_t(slot.argument[0]);
  switch (slot.call) {
    case Call::close_context:
      process.contexts.erase({slot.device, number});
      return answer(slot, kernel.close_context(process.pasid, number));
    case Call::import_pd: return answer(slot, kernel.import_pd(process.pasid, number, std::uint32_t(slot.argument[1])));
    default: return new_context(thread, slot);
  }
}

bool DeviceCalls::new_context(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  host::KernelAgent& kernel = agent_of(thread);
  auto descriptors = process.receive_descriptors(thread.index);
  struct stat status {};
  if (descriptors.empty() || ::fstat(descriptors.front().get(), &status) != 0) return answer(slot, EINVAL);
  if (descriptors_.lacks(process, "context")) return answer(slot, EMFILE);
  const host::ContextFile file{status.st_dev, status.st_ino};
  std::uint32_t number = 0;
  const int error = slot.call == Call::open_context ? kernel.open_context(process.pasid, file, number)
                                                    : kernel.import_context(process.pasid, file, number);
  if (error == 0) process.contexts.emplace(std::pair(slot.device, number), std::move(descriptors.front()));
  slot.value = number;
  return answer(slot, error);
}

// --- The device's own memory.

bool DeviceCalls::device_memory_call(Thread& thread, ThreadSlot& slot) {
  const Pasid pasid = thread.process->pasid;
  host::KernelAgent& kernel = agent_of(thread);
  std::uint32_t value = 0;
  int error = 0;
  switch (slot.call) {
    case Call::alloc_dm: error = kernel.alloc_dm(pasid, slot.argument[0], slot.argument[1], value); break;
    case Call::free_dm:
      error =
          slot.argument[0] > abi::kMostDeviceMemory ? ENOENT : kernel.free_dm(pasid, std::uint32_t(slot.argument[0]));
      break;
    default:
      error = slot.argument[1] > abi::kMostDeviceMemory
                  ? ENOENT
                  : kernel.import_dm(pasid, std::uint32_t(slot.argument[0]), std::uint32_t(slot.argument[1]), value);
  }
  slot.value = value;
  return answer(slot, error);
}

// --- XRC domains.

bool DeviceCalls::xrc_domain_call(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  host::KernelAgent& kernel = agent_of(thread);
  const auto number = std::uint32_t(slot.argument[0]);
  if (slot.call == Call::open_xrcd) return answer(slot, open_domain(thread, slot));
  if (slot.call == Call::open_qp)
    return answer(
        slot, kernel.open_qp(process.pasid, number, std::uint32_t(slot.argument[1]), std::uint32_t(slot.argument[2])));
  const int error = kernel.close_xrcd(process.pasid, number);
  const auto file = error == 0 ? process.domains.find({slot.device, number}) : process.domains.end();
  if (file != process.domains.end()) process.domains.erase(file);
  return answer(slot, error);
}

int DeviceCalls::open_domain(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  host::KernelAgent& kernel = agent_of(thread);
  const int flags = int(slot.argument[0]);
  std::uint32_t number = 0;
  int error = 0;
  if (slot.argument[1] == 1) {
    error = kernel.open_xrcd(process.pasid, std::nullopt, flags, number);
  } else {
    auto descriptors = process.receive_descriptors(thread.index);
    struct stat status {};
    if (descriptors.empty() || ::fstat(descriptors.front().get(), &status) != 0) return EBADF;
    if (descriptors_.lacks(process, "XRC domain")) return EMFILE;
    error = kernel.open_xrcd(process.pasid, host::ContextFile{status.st_dev, status.st_ino}, flags, number);
    if (error == 0) process.domains.emplace(std::pair(slot.device, number), std::move(descriptors.front()));
  }
  slot.value = number;
  return error;
}

}  // namespace rnicsim::sim
