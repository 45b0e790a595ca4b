// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/device/device_calls.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "model/host/log.h"

namespace rnicsim::sim {
namespace {

using abi::Call;
using abi::ThreadSlot;

// Opens the pipe's write end again: a file description that the program does not share, and that never blocks.
Descriptor own_end(const Descriptor& pipe) {
  struct stat file {};
  if (::fstat(pipe.get(), &file) != 0 || !S_ISFIFO(file.st_mode)) return {};
  const std::string path = fmt::format("/proc/self/fd/{}", pipe.get());
  return Descriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
}

}  // namespace

bool DeviceCalls::execute(Thread& thread, ThreadSlot& slot) {
  if (hosts_.agent_of(*thread.process, slot.device) == nullptr) return answer(slot, ENODEV);
  if (slot.call <= Call::free_uar) return pd_or_uar_call(thread, slot);
  if (slot.call <= Call::import_pd) return context_call(thread, slot);
  if (slot.call <= Call::open_qp) return xrc_domain_call(thread, slot);
  if (slot.call <= Call::import_dm) return device_memory_call(thread, slot);
  return device_call(thread, slot);
}

void DeviceCalls::mmio_write(Process& process, const abi::MmioWrite& write) {
  const std::size_t length = std::min<std::size_t>(write.length, sizeof write.data);
  const std::span bytes(reinterpret_cast<const std::byte*>(write.data), length);
  host::KernelAgent* agent = hosts_.agent_of(process, write.device);
  if (length == write.length && agent != nullptr &&
      agent->mmio_write(process.pasid, write.offset, Payload::copy_of(bytes)))
    return;
  host::log_error(fmt::format(
      "{}: {}: a write of {} bytes at BAR offset {:#x} was dropped: the page does not belong to the process",
      hosts_.of(process).name, process.label(), write.length, write.offset));
}

void DeviceCalls::milestone(Process& process, const abi::Milestone& milestone) {
  if (host::KernelAgent* agent = hosts_.agent_of(process, milestone.device))
    agent->software({process.pasid, milestone});
}

bool DeviceCalls::device_call(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  host::KernelAgent& kernel = agent_of(thread);
  switch (slot.call) {
    case Call::command: return command(thread, slot);
    case Call::make_present: return make_present(thread, slot);
    case Call::open_channel: return open_channel(thread, slot);
    case Call::await_event: return await_event(thread, slot);
    case Call::close_channel:
      process.channels.erase({slot.device, std::uint32_t(slot.argument[0])});
      return answer(slot, kernel.close_channel(process.pasid, std::uint32_t(slot.argument[0])));
    case Call::bind_channel:
      if (slot.argument[0] == 0)
        return answer(slot, kernel.bind_completions(process.pasid, std::uint32_t(slot.argument[1]),
                                                    std::uint32_t(slot.argument[2])));
      return answer(slot, kernel.bind_events(process.pasid, std::uint32_t(slot.argument[2])));
    case Call::refill_channel:
      return answer(slot, kernel.refill_channel(process.pasid, std::uint32_t(slot.argument[0])));
    case Call::port_info:
      put_output(slot, kernel.interface());
      slot.value = kernel.completion_vectors();
      return true;
    case Call::gid_entry: {
      abi::GidEntry entry;
      const int error = kernel.gid_entry(std::uint32_t(slot.argument[0]), std::uint32_t(slot.argument[1]), entry);
      put_output(slot, entry);
      return answer(slot, error);
    }
    case Call::lid_route: {
      abi::GidEntry route;
      const int error = kernel.lid_route(std::uint16_t(slot.argument[0]), route);
      put_output(slot, route);
      return answer(slot, error);
    }
    case Call::resolve_path: return resolve_path(thread, slot);
    case Call::rdma_cm: {
      if (slot.input_bytes > sizeof slot.input || slot.output_bytes > sizeof slot.output) return answer(slot, EINVAL);
      const int error = kernel.kernel().rdma_cm(
          process.pasid, std::uint32_t(slot.argument[0]), std::uint32_t(slot.argument[1]),
          std::span(slot.input).first(slot.input_bytes), std::span(slot.output).first(slot.output_bytes));
      return answer(slot, error);
    }
    default: return mmio_read(thread, slot);
  }
}

bool DeviceCalls::make_present(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  const std::uint64_t address = slot.argument[0];
  const std::uint64_t bytes = slot.argument[1];
  const bool waits = slot.argument[4] != 0;
  if (!is_user_range(address, bytes)) return answer(slot, EFAULT);
  const auto waiting = waiting_thread(thread, ThreadState::awaiting_device);
  const auto brought_in = [this, waiting](int error) {
    if (Thread* thread = waiting()) keeper_.threads().resume(*thread, now(), error);
  };
  const int error = agent_of(thread).make_present(
      process.pasid, std::uint32_t(slot.argument[2]), address, bytes, slot.argument[3] != 0,
      waits ? std::function<void(int)>(brought_in) : [](int) {});
  if (error != 0 || !waits) return answer(slot, error);
  keeper_.threads().wait(thread, ThreadState::awaiting_device, std::nullopt);
  return false;
}

bool DeviceCalls::resolve_path(Thread& thread, ThreadSlot& slot) {
  host::KernelAgent& kernel = agent_of(thread);
  abi::AddressVector path;
  std::memcpy(static_cast<void*>(&path), slot.input, sizeof path);
  const int error = kernel.resolve_path(path);
  put_output(slot, path);
  if (error != ETIMEDOUT) return answer(slot, error);
  const auto waiting = waiting_thread(thread, ThreadState::awaiting_device);
  keeper_.threads().wait(thread, ThreadState::awaiting_device, std::nullopt);
  kernel.await_neighbour(thread.process->pasid, [this, waiting] {
    if (Thread* thread = waiting()) keeper_.threads().resume(*thread, now(), ETIMEDOUT);
  });
  return false;
}

bool DeviceCalls::command(Thread& thread, ThreadSlot& slot) {
  const std::uint32_t input_bytes = slot.input_bytes;
  if (input_bytes > sizeof slot.input) return answer(slot, EINVAL);
  std::vector<std::byte> input(slot.input, slot.input + input_bytes);
  const Duration back = hosts_.of(*thread.process).params->cpu.command;
  const auto waiting = waiting_thread(thread, ThreadState::awaiting_device);
  keeper_.threads().wait(thread, ThreadState::awaiting_device, std::nullopt);
  agent_of(thread).command(thread.process->pasid, std::uint32_t(slot.argument[0]), std::move(input),
                           [this, waiting, back](int error, std::span<const std::byte> output) {
                             Thread* thread = waiting();
                             if (thread == nullptr) return;
                             ThreadSlot& slot = slot_of(*thread);
                             std::ranges::copy(output.first(std::min(output.size(), sizeof slot.output)), slot.output);
                             keeper_.threads().resume(*thread, now() + back, error);
                           });
  return false;
}

bool DeviceCalls::open_channel(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  auto descriptors = process.receive_descriptors(thread.index);
  if (descriptors.empty()) return answer(slot, EBADF);
  if (descriptors_.lacks(process, "channel")) return answer(slot, EMFILE);
  auto sink = std::make_shared<Descriptor>(own_end(descriptors.front()));
  if (!*sink) return answer(slot, EBADF);
  slot.value = agent_of(thread).open_channel(process.pasid, [this, &process, sink](const abi::EventRecord& event) {
    // The pipe is full when thousands of events are unread.
    const bool written = ::write(sink->get(), &event, sizeof event) == ssize_t(sizeof event);
    keeper_.memory_waits().interrupted(process);
    keeper_.descriptor_waits().pipe_written(process, *sink);
    keeper_.threads().descriptors_may_be_ready();
    return written;
  });
  process.channels[{slot.device, std::uint32_t(slot.value)}] = sink;
  return true;
}

bool DeviceCalls::await_event(Thread& thread, ThreadSlot& slot) {
  const auto& channels = thread.process->channels;
  const auto found = channels.find({slot.device, std::uint32_t(slot.argument[0])});
  if (found == channels.end()) return answer(slot, ENOENT);
  // The thread found the pipe empty in its turn.
  const bool written_since = thread.process->memory_writes != thread.seen_memory_writes;
  int bytes = 0;
  if (written_since && ::ioctl(found->second->get(), FIONREAD, &bytes) == 0 && bytes > 0) return true;
  keeper_.descriptor_waits().await_pipe(thread, *found->second);
  return false;
}

bool DeviceCalls::mmio_read(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  const auto offset = std::uint32_t(slot.argument[0]);
  const auto bytes = std::uint32_t(slot.argument[1]);
  if ((bytes != 4 && bytes != 8) || !agent_of(thread).mmio_readable(process.pasid, offset, bytes))
    return answer(slot, EFAULT);
  const auto waiting = waiting_thread(thread, ThreadState::awaiting_device);
  keeper_.threads().wait(thread, ThreadState::awaiting_device, std::nullopt);
  agent_of(thread).root_complex().mmio_read(offset, bytes, [this, waiting](std::uint64_t value) {
    Thread* thread = waiting();
    if (thread == nullptr) return;
    thread->process->slot(thread->index).value = value;
    keeper_.threads().resume(*thread, now());
  });
  return false;
}

}  // namespace rnicsim::sim
