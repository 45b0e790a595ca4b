// SPDX-License-Identifier: Apache-2.0
// The agent of a host's kernel for one device: brings the device up; owns its command queue, ICM, event queues and
// GIDs; gives PDs and doorbell pages to processes; executes commands; delivers events; destroys the objects of a dead
// process in dependency order.
//
// The caller charges the CPU cost of a system call (cpu_port, sim/attached). This class models the device's time and
// the kernel's time for a region's pages.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/abi/attach.h"
#include "model/abi/command.h"
#include "model/abi/queue.h"
#include "model/base/delay_line.h"
#include "model/base/kernel.h"
#include "model/base/payload.h"
#include "model/base/pcie.h"
#include "model/base/trace.h"
#include "model/host/cm/counters.h"
#include "model/host/cm/management_port.h"
#include "model/host/command_gate.h"
#include "model/host/driver.h"
#include "model/host/event_channels.h"
#include "model/host/gids.h"
#include "model/host/host_counters.h"
#include "model/host/host_params.h"
#include "model/host/kernel_driver.h"
#include "model/host/memory/page_faults.h"
#include "model/host/objects.h"
#include "model/host/root_complex.h"

namespace rnicsim::host {

class HostKernel;

// A command of a process was answered.
struct CommandAnswered {
  Pasid process;
  abi::CommandOpcode opcode;
  std::uint32_t object;
  int error;  // errno of the kernel's refusal; 0: the device answered
  abi::CommandStatus status;
  std::uint32_t syndrome;
  std::span<const std::byte> input, output;  // mailboxes; the output is empty after a refusal of the kernel
};
struct EventTaken {
  abi::EventType type;
  std::uint32_t number;
};

// A step of a process at one of its queues, at its thread's clock, which may be ahead of the present time.
struct SoftwareMilestone {
  Pasid process;
  const abi::Milestone& milestone;
};

class KernelAgent : public sc_core::sc_module, public KernelDriver {
 public:
  // `interface`: the interface of the device.
  KernelAgent(sc_core::sc_module_name name, const HostParams& params, HostKernel& kernel, RootComplex& root_complex,
              const abi::NetworkInterface& interface);

  HostKernel& kernel() const { return kernel_; }
  RootComplex& root_complex() const override { return root_complex_; }
  const abi::NetworkInterface& interface() const { return interface_; }
  // Bring-up takes simulated time. Before its end system calls return EAGAIN, and commands wait.
  bool ready() const { return ready_; }
  const std::string& failure() const override { return failure_; }

  void forget(Pasid process, std::function<void()> done) override;
  void back(Pasid process, std::uint64_t address, std::uint64_t bytes, ByteCount page) override;

  // --- System calls that need no device: 0 or errno.
  int alloc_pd(Pasid process, std::uint32_t& number);
  int dealloc_pd(Pasid process, std::uint32_t number);  // EBUSY: an object uses the PD; ENOENT
  int alloc_uar(Pasid process, std::uint32_t& page);
  int free_uar(Pasid process, std::uint32_t page);
  // The device's own memory; allocated memory is zeroed.
  int alloc_dm(Pasid process, std::uint64_t bytes, std::uint64_t log_alignment, std::uint32_t& offset);
  int free_dm(Pasid process, std::uint32_t offset);
  int import_dm(Pasid process, std::uint32_t context, std::uint32_t offset, std::uint32_t& bytes) const;
  // `file`: identity of the context's descriptor, the same in all processes; the file must stay open as long as the
  // context.
  int open_context(Pasid process, const ContextFile& file, std::uint32_t& number);
  int import_context(Pasid process, const ContextFile& file, std::uint32_t& number);
  int close_context(Pasid process, std::uint32_t number);
  int import_pd(Pasid process, std::uint32_t context, std::uint32_t number) const;
  // `file`: nullopt for a private domain of the process. `flags`: O_CREAT, O_EXCL.
  int open_xrcd(Pasid process, const std::optional<ContextFile>& file, int flags, std::uint32_t& number);
  int close_xrcd(Pasid process, std::uint32_t number);
  int open_qp(Pasid process, std::uint32_t xrcd, std::uint32_t qpn, std::uint32_t events);
  int gid_entry(std::uint32_t port, std::uint32_t index, abi::GidEntry& entry) const;
  int lid_route(std::uint16_t lid, abi::GidEntry& route) const;
  // Does not wait. After ETIMEDOUT the caller waits by await_neighbour() before it returns the error to the process.
  int resolve_path(abi::AddressVector& path) const;
  // `done` runs after the host's timeout for neighbours; not if the process has ended.
  void await_neighbour(Pasid process, std::function<void()> done);
  std::uint32_t completion_vectors() const { return params_.completion_vectors; }

  // --- Commands: checked for ownership, completed (object number, pasid, eqn) and executed by the device, in order.
  // `done` gets 0 and the output mailbox, or the errno of the kernel's refusal. `events`: the channel for asynchronous
  // events of an object that the command creates; 0: none.
  using CommandDone = std::function<void(int error, std::span<const std::byte> output)>;
  void command(Pasid process, std::uint32_t events, std::vector<std::byte> input, CommandDone done);

  // --- Brings in pages of a region on demand, for writing if `writable`. Returns 0, and `done` gets 0 or errno; or
  // returns the errno of a refusal, without `done`: ENOENT: not a region on demand of the process; EFAULT: outside of
  // the region.
  int make_present(Pasid process, std::uint32_t region, std::uint64_t address, std::uint64_t bytes, bool writable,
                   std::function<void(int)> done);

  // --- Events. `sink` is called at the time of the interrupt. If it returns false (no room), refill_channel() delivers
  // this record and later ones.
  using EventSink = std::function<bool(const abi::EventRecord&)>;
  std::uint32_t open_channel(Pasid process, EventSink sink);
  int close_channel(Pasid process, std::uint32_t channel);
  int bind_completions(Pasid process, std::uint32_t cqn, std::uint32_t channel);  // ENOENT: not a CQ of the process
  int bind_events(Pasid process, std::uint32_t channel);                          // events of port and device
  int refill_channel(Pasid process, std::uint32_t channel);

  bool owns_channel(Pasid process, std::uint32_t channel) const override;
  void deliver_connection(std::uint32_t channel, std::uint32_t id) override;
  void forget_connection(std::uint32_t channel, std::uint32_t id) override;

  // --- MMIO of a process, at the present time. False: outside of the process's pages (real hardware: SIGBUS); the
  // write is counted and does not reach the device.
  bool mmio_write(Pasid process, std::uint32_t offset, Payload&& data);
  bool mmio_readable(Pasid process, std::uint32_t offset, std::size_t bytes) const;

  trace::Point<CommandAnswered> command_answered;
  trace::Point<EventTaken> event_taken;
  // Process ports report these only if a subscriber existed when the process was made.
  trace::Point<SoftwareMilestone> software;
  KernelCounters counters() const;

 private:
  void run();
  void take_arrivals();
  void give_up_neighbours();
  void enqueue(std::function<void()> work);

  int carry(Pasid process, std::uint32_t events, std::vector<std::byte>& input, std::vector<std::byte>& output);
  void follow_up(std::span<const std::byte> input, std::span<std::byte> output);
  int prepare(Pasid process, std::vector<std::byte>& input);
  bool register_pages(std::span<const std::byte> input);
  void tell(Pasid process, std::span<const std::byte> input, int error, std::span<const std::byte> output) const;

  void destroy_objects_of(Pasid process);
  void detach_groups(Pasid process);
  void leave_domain_qps(Pasid process);
  template <class Object>
  void destroy_all(Pasid process, const std::map<std::uint32_t, Object>& objects, abi::CommandOpcode opcode);
  void destroy_windows_on(Pasid process);
  void destroy(std::uint32_t number, abi::CommandOpcode opcode);
  void clear_device_memory(std::uint32_t offset);

  bool owns_window(Pasid process, std::uint32_t offset, std::size_t bytes) const;
  std::uint32_t gid_table_length() const;

  const HostParams params_;
  HostKernel& kernel_;
  RootComplex& root_complex_;
  const abi::NetworkInterface interface_;
  const std::vector<Gid> gids_;
  Objects objects_;
  EventChannels channels_{objects_};
  Driver driver_;
  CommandGate gate_;
  ManagementPort management_;

  KernelCounters counters_;
  std::deque<std::function<void()>> work_;
  DelayLine<std::function<void()>> unanswered_{[this] { give_up_neighbours(); }};
  sc_core::sc_event more_work_{"more_work"};
  bool ready_ = false;
  std::string failure_;
};

}  // namespace rnicsim::host
