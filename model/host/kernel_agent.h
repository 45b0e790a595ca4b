// The agent of a host's kernel for one of its devices: it brings the device up, owns its command queue, ICM, event
// queues and GIDs, gives processes their PDs and doorbell pages, carries commands, delivers events, and destroys what a
// dead process leaves, in order.
//
// A system call's CPU cost is the caller's affair (cpu_port, sim/attached); the device's time passes in here, and that
// of the kernel's work on a region's pages.
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
#include "model/host/objects.h"
#include "model/host/page_faults.h"
#include "model/host/root_complex.h"

namespace rnicsim::host {

class HostKernel;

// A process's command, when its answer is there.
struct CommandAnswered {
  Pasid process;
  abi::CommandOpcode opcode;
  std::uint32_t object;
  int error;                               // errno of the kernel's refusal; 0: the device answered
  abi::CommandStatus status;
  std::uint32_t syndrome;
};
struct EventTaken {
  abi::EventType type;
  std::uint32_t number;
};

// What a process did with a queue of its own, at its thread's clock, which may be ahead of the present time.
struct SoftwareMilestone {
  Pasid process;
  const abi::Milestone& milestone;
};

class KernelAgent : public sc_core::sc_module, public KernelDriver {
 public:
  // Of the device with that interface.
  KernelAgent(sc_core::sc_module_name name, const HostParams& params, HostKernel& kernel, RootComplex& root_complex,
              const abi::NetworkInterface& interface);

  HostKernel& kernel() const { return kernel_; }
  RootComplex& root_complex() const override { return root_complex_; }
  const abi::NetworkInterface& interface() const { return interface_; }
  // Bring-up takes simulated time. Until then system calls answer EAGAIN, and commands wait.
  bool ready() const { return ready_; }
  const std::string& failure() const override { return failure_; }

  void forget(Pasid process, std::function<void()> done) override;
  void back(Pasid process, std::uint64_t address, std::uint64_t bytes, ByteCount page) override;

  // --- System calls that need no device: 0 or errno.
  int alloc_pd(Pasid process, std::uint32_t& number);
  int dealloc_pd(Pasid process, std::uint32_t number);  // EBUSY while an object uses it; ENOENT
  int alloc_uar(Pasid process, std::uint32_t& page);
  int free_uar(Pasid process, std::uint32_t page);
  // Of the device's own memory; what is given out is zeros.
  int alloc_dm(Pasid process, std::uint64_t bytes, std::uint64_t log_alignment, std::uint32_t& offset);
  int free_dm(Pasid process, std::uint32_t offset);
  int import_dm(Pasid process, std::uint32_t context, std::uint32_t offset, std::uint32_t& bytes) const;
  // `file` is what the context's descriptor leads to, in whatever process: it must stay open as long as the context.
  int open_context(Pasid process, const ContextFile& file, std::uint32_t& number);
  int import_context(Pasid process, const ContextFile& file, std::uint32_t& number);
  int close_context(Pasid process, std::uint32_t number);
  int import_pd(Pasid process, std::uint32_t context, std::uint32_t number) const;
  // `file`: none for a domain of the process's own. `flags`: O_CREAT, O_EXCL.
  int open_xrcd(Pasid process, const std::optional<ContextFile>& file, int flags, std::uint32_t& number);
  int close_xrcd(Pasid process, std::uint32_t number);
  int open_qp(Pasid process, std::uint32_t xrcd, std::uint32_t qpn, std::uint32_t events);
  int gid_entry(std::uint32_t port, std::uint32_t index, abi::GidEntry& entry) const;
  int lid_route(std::uint16_t lid, abi::GidEntry& route) const;
  // At once. With ETIMEDOUT the caller waits by await_neighbour() before it tells the process.
  int resolve_path(abi::AddressVector& path) const;
  // `done` runs when the host has asked the network in vain for as long as it does; not if the process has ended.
  void await_neighbour(Pasid process, std::function<void()> done);
  std::uint32_t completion_vectors() const { return params_.completion_vectors; }

  // --- Commands: checked for ownership, completed (object number, pasid, eqn) and sent to the device, in order.
  // `done` gets 0 and the output mailbox, or the errno of the kernel's refusal. Of an object that it makes, the channel
  // `events` hears the asynchronous events; 0: none does.
  using CommandDone = std::function<void(int error, std::span<const std::byte> output)>;
  void command(Pasid process, std::uint32_t events, std::vector<std::byte> input, CommandDone done);

  // --- Pages of a region on demand are brought in, for writing if `writable`. 0 and `done`, which gets 0 or errno; or
  // the errno of the refusal: ENOENT for no region on demand of the process's, EFAULT for a range that is not its.
  int make_present(Pasid process, std::uint32_t region, std::uint64_t address, std::uint64_t bytes, bool writable,
                   std::function<void(int)> done);

  // --- Events. `sink` is called at the interrupt's time. False: it has no room, and gets the record, and those behind
  // it, by refill_channel.
  using EventSink = std::function<bool(const abi::EventRecord&)>;
  std::uint32_t open_channel(Pasid process, EventSink sink);
  int close_channel(Pasid process, std::uint32_t channel);
  int bind_completions(Pasid process, std::uint32_t cqn, std::uint32_t channel);  // ENOENT for another's CQ
  int bind_events(Pasid process, std::uint32_t channel);                          // of port and device
  int refill_channel(Pasid process, std::uint32_t channel);

  bool owns_channel(Pasid process, std::uint32_t channel) const override;
  void deliver_connection(std::uint32_t channel, std::uint32_t id) override;
  void forget_connection(std::uint32_t channel, std::uint32_t id) override;

  // --- MMIO of a process, at the present time. False: not in a page of its own (the process gets SIGBUS on real iron);
  // counted, and nothing reaches the device.
  bool mmio_write(Pasid process, std::uint32_t offset, Payload&& data);
  bool mmio_readable(Pasid process, std::uint32_t offset, std::size_t bytes) const;

  trace::Point<CommandAnswered> command_answered;
  trace::Point<EventTaken> event_taken;
  // Told only when somebody listened before the process was made.
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
