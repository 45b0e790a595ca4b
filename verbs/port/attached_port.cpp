// SPDX-License-Identifier: Apache-2.0
// DevicePorts of an attached process. Calls and posted writes go through the slot of the calling thread; DMA memory is
// shared with the simulator.

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/interprocess/managed_external_buffer.hpp>
#include <memory>
#include <mutex>

#include "sim/host/kernel/files/descriptors.h"
#include "sim/host/kernel/ipc/addresses.h"
#include "sim/host/kernel/processes/threads.h"
#include "sim/host/shim/cancellation.h"
#include "sim/host/shim/mappings.h"
#include "sim/host/shim/session.h"
#include "sim/host/shim/spin/timed_look.h"
#include "sim/host/time/turn.h"
#include "verbs/port/device_port.h"

namespace rnicsim {
namespace {

using abi::Call;
using abi::ThreadSlot;

// Heap of DMA memory, shared by all devices of the process.
class DmaHeap {
 public:
  DmaHeap() : heap_(boost::interprocess::create_only, clock::session()->memory, clock::session()->memory_bytes) {}
  std::byte* allocate(std::size_t bytes, std::size_t alignment) {
    const std::lock_guard lock(mutex_);
    void* memory = heap_.allocate_aligned(bytes, alignment, std::nothrow);
    if (memory != nullptr) memset(memory, 0, bytes);
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory) {
    const std::lock_guard lock(mutex_);
    heap_.deallocate(memory);
  }

 private:
  boost::interprocess::managed_external_buffer heap_;
  std::mutex mutex_;
};

// For real time. If another thread has closed the pipe, the caller's object may be gone. The function then sleeps, as
// a thread on Linux sleeps on when another thread closes the file for which it waits.
bool wait_for_record(int fd) {
  pollfd descriptor{fd, POLLIN, 0};
  if (::poll(&descriptor, 1, -1) < 0) return false;
  while ((descriptor.revents & POLLIN) == 0) ::pause();
  return true;
}

class AttachedPort : public DevicePort {
 public:
  AttachedPort(DmaHeap& heap, const abi::NetworkInterface& interface)
      : virtual_pid_(clock::session()->header().virtual_pid), heap_(heap), interface_(interface) {
    followed_ = (clock::session()->header().features & abi::attach_feature::kMilestones) != 0;
  }

  bool inherited() const override {
    return clock::session() == nullptr || clock::session()->header().virtual_pid != virtual_pid_;
  }

  void mmio_write(std::uint32_t offset, std::span<const std::byte> data) override {
    ThreadSlot* slot = usable_slot();
    if (slot == nullptr || data.size() > sizeof(abi::MmioWrite::data)) return;
    const std::uint32_t produced = slot->mmio_produced.load(std::memory_order_relaxed);
    while (produced - slot->mmio_consumed.load(std::memory_order_acquire) == ThreadSlot::kMmioEntries)
      clock::catch_up(*slot);
    abi::MmioWrite& entry = slot->mmio[produced % ThreadSlot::kMmioEntries];
    clock::end_quiet_time(*slot);
    entry.time = slot->now;
    entry.offset = offset;
    entry.length = std::uint16_t(data.size());
    entry.device = interface_.device;
    memcpy(entry.data, data.data(), data.size());
    slot->mmio_produced.store(produced + 1, std::memory_order_seq_cst);
    if (!clock::simulated()) clock::kick();
  }

  std::uint64_t mmio_read(std::uint32_t offset, std::uint32_t bytes) override {
    ThreadSlot* slot = usable_slot();
    if (slot == nullptr) return ~0ull;
    return call(*slot, Call::mmio_read, {offset, bytes}) == 0 ? slot->value : ~0ull;
  }

  std::byte* allocate(std::size_t bytes, std::size_t alignment) override {
    return inherited() ? nullptr : heap_.allocate(bytes, alignment);
  }
  void release(std::byte* memory, std::size_t) override {
    if (!inherited()) heap_.release(memory);
  }

  int pin(const void* address, std::size_t bytes, bool writable, std::uint64_t& bus_address) override {
    ThreadSlot* slot = usable_slot();
    if (slot == nullptr) return ENODEV;
    if (!clock::populate(address, bytes)) return EFAULT;
    const int error = call_slot(Call::pin, {reinterpret_cast<std::uint64_t>(address), bytes, writable});
    if (error == 0) {
      bus_address = slot->value;
      clock::note_pinned(address, bytes);
    }
    return error;
  }
  int unpin(std::uint64_t bus_address, std::size_t bytes, bool writable) override {
    const int error = call_slot(Call::unpin, {bus_address, bytes, writable});
    const ThreadSlot* slot = usable_slot();
    if (error != 0 || slot == nullptr) return error;
    std::array<abi::AsideRange, sizeof slot->output / (sizeof(abi::AsideRange))> aside;
    memcpy(aside.data(), slot->output, sizeof aside);
    for (std::size_t i = 0; i < std::min<std::size_t>(slot->value, aside.size()); ++i)
      clock::unmap_aside(aside[i].address, aside[i].bytes);
    return 0;
  }
  void on_demand(const void* address, std::size_t bytes) override {
    constexpr std::size_t kMost = SIZE_MAX / 2;  // no process has memory above this
    clock::note_pinned(address, std::min(bytes, kMost));
  }
  int make_present(std::uint32_t region, std::uint64_t address, std::size_t bytes, bool writable, bool waits) override {
    return call_slot(Call::make_present, {address, bytes, region, writable, waits});
  }
  int alloc_pd(std::uint32_t& number) override { return call_slot(Call::alloc_pd, {}, &number); }
  int dealloc_pd(std::uint32_t number) override { return call_slot(Call::dealloc_pd, {number}); }
  int alloc_uar(std::uint32_t& page) override { return call_slot(Call::alloc_uar, {}, &page); }
  int free_uar(std::uint32_t page) override { return call_slot(Call::free_uar, {page}); }

  int alloc_dm(std::uint64_t bytes, std::uint32_t log_alignment, std::uint32_t& offset) override {
    return call_slot(Call::alloc_dm, {bytes, log_alignment}, &offset);
  }
  int free_dm(std::uint32_t offset) override { return call_slot(Call::free_dm, {offset}); }
  int import_dm(std::uint32_t context, std::uint32_t offset, std::uint32_t& bytes) override {
    return call_slot(Call::import_dm, {context, offset}, &bytes);
  }

  int open_context(int fd, std::uint32_t& number) override { return call_with(Call::open_context, fd, number); }
  int import_context(int fd, std::uint32_t& number) override {
    charge(abi::CpuCost::system_call, 1);
    return call_with(Call::import_context, fd, number);
  }
  int close_context(std::uint32_t number) override {
    ThreadSlot* slot = usable_slot();
    return slot != nullptr ? call(*slot, Call::close_context, {number}) : ENODEV;
  }
  int import_pd(std::uint32_t context, std::uint32_t number) override {
    return call_slot(Call::import_pd, {context, number});
  }

  int open_xrcd(int fd, int flags, std::uint32_t& number) override {
    const auto wanted = std::uint64_t(std::uint32_t(flags));
    if (fd == -1) return call_slot(Call::open_xrcd, {wanted, 1}, &number);
    charge(abi::CpuCost::system_call, 1);
    return ::fcntl(fd, F_GETFD) < 0 ? EBADF : call_with(Call::open_xrcd, fd, number, wanted);
  }
  int close_xrcd(std::uint32_t number) override { return call_slot(Call::close_xrcd, {number}); }
  int open_qp(std::uint32_t xrcd, std::uint32_t qpn, std::uint32_t events) override {
    return call_slot(Call::open_qp, {xrcd, qpn, events});
  }

  int command(std::uint32_t events, std::span<const std::byte> input, std::span<std::byte> output) override {
    ThreadSlot* slot = usable_slot();
    if (slot == nullptr) return ENODEV;
    if (input.size() > sizeof slot->input || output.size() > sizeof slot->output) return EINVAL;
    memcpy(slot->input, input.data(), input.size());
    slot->input_bytes = std::uint32_t(input.size());
    slot->output_bytes = std::uint32_t(output.size());
    charge(abi::CpuCost::command, 1);
    const int error = call(*slot, Call::command, {events});
    if (error == 0) memcpy(output.data(), slot->output, output.size());
    return error;
  }

  int open_channel(int fd, std::uint32_t& channel) override { return call_with(Call::open_channel, fd, channel); }
  int close_channel(std::uint32_t channel) override { return call_slot(Call::close_channel, {channel}); }
  int bind_completions(std::uint32_t cqn, std::uint32_t channel) override {
    return call_slot(Call::bind_channel, {0, cqn, channel});
  }
  int bind_events(std::uint32_t channel) override { return call_slot(Call::bind_channel, {1, 0, channel}); }
  int refill_channel(std::uint32_t channel) override {
    ThreadSlot* slot = usable_slot();
    return slot != nullptr ? call(*slot, Call::refill_channel, {channel}) : ENODEV;
  }

  int port_info(abi::NetworkInterface& interface) override {
    interface = interface_;
    return 0;
  }
  int gid_entry(std::uint32_t port, std::uint32_t index, abi::GidEntry& entry) override {
    ThreadSlot* slot = usable_slot();
    if (slot == nullptr) return ENODEV;
    const int error = call(*slot, Call::gid_entry, {port, index});
    if (error == 0) memcpy(&entry, slot->output, sizeof entry);
    return error;
  }
  int lid_route(std::uint16_t lid, abi::GidEntry& route) override {
    ThreadSlot* slot = usable_slot();
    if (slot == nullptr) return ENODEV;
    const int error = call(*slot, Call::lid_route, {lid});
    if (error == 0) memcpy(&route, slot->output, sizeof route);
    return error;
  }
  int resolve_path(abi::AddressVector& path) override {
    ThreadSlot* slot = usable_slot();
    if (slot == nullptr) return ENODEV;
    clock::charge(*slot, abi::CpuCost::system_call);
    memcpy(slot->input, &path, sizeof path);
    const int error = call(*slot, Call::resolve_path, {});
    if (error == 0) memcpy(static_cast<void*>(&path), slot->output, sizeof path);
    return error;
  }
  std::uint32_t completion_vectors() const override {
    ThreadSlot* slot = usable_slot();
    return slot != nullptr && call(*slot, Call::port_info, {}) == 0 ? std::uint32_t(slot->value) : 1;
  }

  int rdma_cm(std::uint32_t channel, std::uint32_t command, std::span<const std::byte> input,
              std::span<std::byte> output) override {
    ThreadSlot* slot = usable_slot();
    if (slot == nullptr) return ENODEV;
    if (input.size() > sizeof slot->input || output.size() > sizeof slot->output) return EINVAL;
    clock::charge(*slot, abi::CpuCost::system_call);
    memcpy(slot->input, input.data(), input.size());
    slot->input_bytes = std::uint32_t(input.size());
    slot->output_bytes = std::uint32_t(output.size());
    const int error = call(*slot, Call::rdma_cm, {channel, command});
    if (error == 0) memcpy(output.data(), slot->output, output.size());
    return error;
  }

  std::uint64_t epoch() const override { return clock::session()->header().epoch; }
  void charge(abi::CpuCost cost, std::uint32_t times) override {
    if (ThreadSlot* slot = usable_slot()) clock::charge(*slot, cost, times);
  }
  void begin_look(abi::CpuCost cost) override {
    if (ThreadSlot* slot = clock::simulated_slot()) clock::begin_timed_look(*slot, cost);
  }
  void look(const void* site) override {
    if (ThreadSlot* slot = clock::simulated_slot()) clock::timed_look(*slot, site);
  }
  void end_look(bool found) override {
    if (ThreadSlot* slot = clock::simulated_slot()) clock::end_timed_look(*slot, found);
  }
  void declare_look(const void* function, int nothing) override { clock::declare_look(function, nothing); }
  void wait_visible() override {
    ThreadSlot* slot = clock::simulated_slot();
    if (slot == nullptr) return void(::sched_yield());
    clock::charge(*slot, abi::CpuCost::system_call);
    clock::call(*slot, Call::look, {0});
  }
  void wait_unlocked(const void* lock) override {
    ThreadSlot* slot = clock::simulated_slot();
    if (slot == nullptr) return void(::sched_yield());
    const clock::Reason reason(*slot, "a queue's lock");
    clock::wait_on(*slot, lock, abi::kForever);
  }
  bool hand_over(const void* lock) override {
    ThreadSlot* slot = clock::simulated_slot();
    return slot != nullptr && clock::wake_spinning(*slot, lock);
  }
  void wait_acknowledged(const void* count, std::uint32_t missing, const char* function) override {
    ThreadSlot* slot = clock::simulated_slot();
    if (slot == nullptr) return void(::sched_yield());
    char text[sizeof slot->reason];
    snprintf(text, sizeof text, "%s waits for the acknowledgement of %u event%s", function, missing,
             missing == 1 ? "" : "s");
    const clock::Reason reason(*slot, text);
    clock::wait_on(*slot, count, abi::kForever);
  }
  void acknowledged(const void* count) override {
    if (ThreadSlot* slot = clock::simulated_slot()) clock::wake(*slot, count, clock::kEveryone);
  }
  void pass_lock(TimedLock& lock, abi::CpuCost held) override {
    ThreadSlot* slot = clock::simulated_slot();
    if (slot == nullptr) return;
    // A thread whose clock is earlier may come to the lock first: simulated time must reach this clock.
    if (clock::other_threads()) clock::sync(*slot);
    const auto& cost = clock::session()->header().cost;
    slot->now = lock.take(slot->now, {cost[std::size_t(abi::CpuCost::doorbell_lock)],
                                      cost[std::size_t(abi::CpuCost::doorbell_lock_contended)],
                                      cost[std::size_t(abi::CpuCost::doorbell_lock_waiting)], cost[std::size_t(held)]});
  }
  bool wait_for_event(std::uint32_t channel, int fd, bool found_nothing) override {
    if (!found_nothing) return true;
    ThreadSlot* slot = clock::simulated_slot();
    if (slot == nullptr) return wait_for_record(fd);
    clock::cancellation_point();
    const int error = call(*slot, Call::await_event, {channel});
    if (error == ENOENT) return clock::wait_ready(*slot, fd, POLLIN);  // a channel of the process that forked this one
    // A signal handler may have had turns: the earlier look at the pipe is out of date.
    if (error == 0 || clock::ended_by_cancellation(error)) return true;
    errno = error;
    return error == EINTR && clock::restarts_after_signal();
  }
  std::uint64_t time() override {
    const ThreadSlot* slot = usable_slot();
    return slot != nullptr ? slot->now : 0;
  }
  void tell(const abi::Milestone& milestone) override {
    ThreadSlot* slot = clock::simulated_slot();
    if (slot == nullptr) return;
    const std::uint32_t produced = slot->milestones_produced.load(std::memory_order_relaxed);
    while (produced - slot->milestones_consumed.load(std::memory_order_acquire) == ThreadSlot::kMilestoneEntries)
      clock::catch_up(*slot);
    abi::Milestone& entry = slot->milestones[produced % ThreadSlot::kMilestoneEntries];
    entry = milestone;
    entry.device = interface_.device;
    slot->milestones_produced.store(produced + 1, std::memory_order_release);
  }

 private:
  // nullptr: the simulator does not know the thread, or the code runs in a signal handler outside the thread's turn,
  // or in a forked child.
  ThreadSlot* usable_slot() const {
    if (inherited()) return nullptr;
    return clock::simulated() ? clock::simulated_slot() : clock::own_slot();
  }

  int call(ThreadSlot& slot, Call code, std::initializer_list<std::uint64_t> arguments) const {
    slot.device = interface_.device;
    return clock::call(slot, code, arguments);
  }
  int call_slot(Call code, std::initializer_list<std::uint64_t> arguments, std::uint32_t* value = nullptr) {
    ThreadSlot* slot = usable_slot();
    if (slot == nullptr) return ENODEV;
    clock::charge(*slot, abi::CpuCost::system_call);
    const int error = call(*slot, code, arguments);
    if (error == 0 && value != nullptr) *value = std::uint32_t(slot->value);
    return error;
  }
  int call_with(Call code, int fd, std::uint32_t& value, std::uint64_t argument = 1) {
    ThreadSlot* slot = usable_slot();
    if (slot == nullptr) return ENODEV;
    if (::fcntl(fd, F_GETFD) < 0) return EINVAL;
    if (!clock::send_descriptors({&fd, 1})) return ENODEV;
    const int error = call(*slot, code, {argument, 0});
    if (error == 0) value = std::uint32_t(slot->value);
    return error;
  }

  const std::uint32_t virtual_pid_;
  DmaHeap& heap_;
  const abi::NetworkInterface interface_;
};

// All ports of one process.
struct Ports {
  DmaHeap heap;
  std::array<std::unique_ptr<AttachedPort>, abi::kMaxDevices> by_device;
};

}  // namespace

__attribute__((visibility("default"))) DevicePort* device_port(std::uint32_t device) {
  static std::uint32_t virtual_pid = 0;
  static Ports* ports = nullptr;
  const abi::NetworkInterface* interface =
      clock::session() != nullptr && device < abi::kMaxDevices ? clock::session()->own_interface(device) : nullptr;
  if (interface == nullptr) {
    errno = ENODEV;
    return nullptr;
  }
  // A forked child attaches again. The inherited ports belong to the parent, and their shared memory is unmapped here.
  if (virtual_pid != clock::session()->header().virtual_pid) {
    ports = new Ports;
    virtual_pid = clock::session()->header().virtual_pid;
  }
  auto& port = ports->by_device[device];
  if (port == nullptr) port = std::make_unique<AttachedPort>(ports->heap, *interface);
  return port.get();
}

}  // namespace rnicsim
