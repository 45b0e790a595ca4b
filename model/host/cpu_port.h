// SPDX-License-Identifier: Apache-2.0
// The port of a software process inside the simulator to one device. System calls go directly to the kernel and its
// agent. CPU time is simulated time for which the calling thread (SC_THREAD) waits. Each thread has a CPU of its own.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "model/base/delay_line.h"
#include "model/base/kernel.h"
#include "model/base/payload.h"
#include "model/base/pcie.h"
#include "model/host/host_kernel.h"
#include "model/host/host_params.h"
#include "model/host/kernel_agent.h"
#include "model/host/memory/local_memory.h"
#include "model/host/root_complex.h"
#include "verbs/port/device_port.h"

namespace rnicsim::host {

class CpuPort : public DevicePort {
 public:
  CpuPort(const HostParams& params, KernelAgent& agent);
  ~CpuPort() override;
  CpuPort(const CpuPort&) = delete;
  CpuPort& operator=(const CpuPort&) = delete;

  Pasid pasid() const { return pasid_; }
  // Waits for the CPU time that the thread has used but not yet waited for.
  void settle();
  void wait_until(Duration at);
  // The calling thread's clock, which may be ahead of the simulation's.
  Duration thread_time() { return now() + current_thread().charged; }
  // From now on adds the work of the calling thread's CPU to `busy`; polling in vain does not count. `busy` must
  // outlive the thread.
  void meter(Duration& busy) { current_thread().meter = &busy; }
  // Declares memory of this process that stays mapped as long as the process lives.
  void trust(std::span<std::byte> memory) { memory_.trust(memory); }
  // Call before memory is unmapped or remapped: waits until no device holds translations of its pages on demand.
  void withdraw(std::span<const std::byte> memory);
  // Declares that the memory has huge pages.
  void back(std::span<const std::byte> memory, ByteCount page) {
    kernel_.back(pasid_, reinterpret_cast<std::uint64_t>(memory.data()), memory.size(), page);
  }
  // The calling thread ends or needs no CPU for long: waits for its used time and forgets the thread.
  void leave();
  // Ends the process: waits until kernel and device have destroyed its objects.
  void exit();

  void mmio_write(std::uint32_t offset, std::span<const std::byte> data) override;
  std::uint64_t mmio_read(std::uint32_t offset, std::uint32_t bytes) override;
  std::byte* allocate(std::size_t bytes, std::size_t alignment) override;
  void release(std::byte* memory, std::size_t bytes) override;
  int pin(const void* address, std::size_t bytes, bool writable, std::uint64_t& bus_address) override;
  int unpin(std::uint64_t bus_address, std::size_t bytes, bool writable) override;
  int make_present(std::uint32_t region, std::uint64_t address, std::size_t bytes, bool writable, bool waits) override;
  int alloc_pd(std::uint32_t& number) override;
  int dealloc_pd(std::uint32_t number) override;
  int alloc_uar(std::uint32_t& page) override;
  int free_uar(std::uint32_t page) override;
  int alloc_dm(std::uint64_t bytes, std::uint32_t log_alignment, std::uint32_t& offset) override;
  int free_dm(std::uint32_t offset) override;
  int import_dm(std::uint32_t context, std::uint32_t offset, std::uint32_t& bytes) override;
  int open_context(int fd, std::uint32_t& number) override;
  int import_context(int fd, std::uint32_t& number) override;
  int close_context(std::uint32_t number) override;
  int import_pd(std::uint32_t context, std::uint32_t number) override;
  int open_xrcd(int fd, int flags, std::uint32_t& number) override;
  int close_xrcd(std::uint32_t number) override;
  int open_qp(std::uint32_t xrcd, std::uint32_t qpn, std::uint32_t events) override;
  int command(std::uint32_t events, std::span<const std::byte> input, std::span<std::byte> output) override;
  int open_channel(int fd, std::uint32_t& channel) override;
  int close_channel(std::uint32_t channel) override;
  int bind_completions(std::uint32_t cqn, std::uint32_t channel) override;
  int bind_events(std::uint32_t channel) override;
  int refill_channel(std::uint32_t channel) override;
  int port_info(abi::NetworkInterface& interface) override;
  int gid_entry(std::uint32_t port, std::uint32_t index, abi::GidEntry& entry) override;
  int lid_route(std::uint16_t lid, abi::GidEntry& route) override;
  int resolve_path(abi::AddressVector& path) override;
  std::uint32_t completion_vectors() const override;
  int rdma_cm(std::uint32_t channel, std::uint32_t command, std::span<const std::byte> input,
              std::span<std::byte> output) override;
  void charge(abi::CpuCost cost, std::uint32_t times) override;
  void wait_visible() override;
  bool wait_for_event(std::uint32_t, int fd, bool) override;
  void wait_unlocked(const void* lock) override;
  bool hand_over(const void* lock) override;
  void pass_lock(TimedLock& lock, abi::CpuCost held) override;
  std::uint64_t time() override;
  void tell(const abi::Milestone& milestone) override;

 private:
  struct Thread {
    Duration charged;
    Sleep sleep;
    Duration busy_until;  // end of its own work, after an empty poll: not woken before
    // DMA wrote while the thread waited between its poll and wait_visible(): wait_visible() must return at once.
    bool seen_meanwhile = false;
    Duration* meter = nullptr;  // sum of the thread's work
  };

  // A store that a thread ahead of the simulation made; executed when the simulation reaches its time.
  struct Store {
    std::uint32_t offset;
    Payload data;
  };

  Thread& current_thread() {
    const auto* process = simulation_.get_curr_proc_info()->process_handle;
    if (process != last_process_ || last_thread_ == nullptr) look_up(process);
    return *last_thread_;
  }
  void look_up(const sc_core::sc_process_b* process);
  bool alone() const;
  void store_due();
  void written();
  void settle(Thread& thread);
  static void work(Thread& thread, Duration time);
  void system_call();

  const HostParams params_;
  sc_core::sc_simcontext& simulation_;  // kept, because each charge asks for the running process
  KernelAgent& agent_;
  HostKernel& kernel_;
  RootComplex& root_complex_;
  LocalMemory memory_;
  Pasid pasid_;
  std::map<std::uint32_t, int> channels_;      // duplicate of the caller's descriptor, by channel
  std::multimap<std::uint32_t, int> domains_;  // duplicate of the domain's descriptor, so that no later file gets the
                                               // same inode

  std::unordered_map<const sc_core::sc_process_b*, Thread> threads_;  // never iterated: the order of addresses differs
                                                                      // between runs
  const sc_core::sc_process_b* last_process_ = nullptr;               // process of last_thread_
  Thread* last_thread_ = nullptr;
  std::vector<Thread*> sleeping_;
  std::uint64_t visible_writes_ = 0;
  DelayLine<Store> stores_{[this] { store_due(); }};
  StorePath path_;  // path with the stores in stores_
  sc_core::sc_event readable_{"readable"};
  sc_core::sc_event unlocked_{"unlocked"};
};

}  // namespace rnicsim::host
