// SPDX-License-Identifier: Apache-2.0
// Calls of attached processes to the operating system of their simulated host. TimeKeeper executes calls about time,
// the host's kernel agent those about the device, Network those about sockets. Calls about processes are executed
// here.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/host/host_kernel.h"
#include "model/host/host_params.h"
#include "model/host/kernel_agent.h"
#include "model/host/root_complex.h"
#include "sim/attached/attach_server.h"
#include "sim/attached/descriptor_budget.h"
#include "sim/attached/ipc/system_v.h"
#include "sim/attached/network/network.h"
#include "sim/attached/processes/huge_pages.h"
#include "sim/attached/time/processors.h"
#include "sim/attached/time/stall_guard.h"
#include "sim/attached/time/time_keeper.h"

namespace rnicsim::sim {

struct HostServices {
  std::string name;
  host::HostKernel* kernel = nullptr;
  std::vector<host::KernelAgent*> agents{};  // one for each device of the host
  const host::HostParams* params = nullptr;
  // Earliest time at which a device of the host may write to host memory, if no event happens in the devices before
  // `next`.
  std::function<Duration(Duration next)> quiet_until{};
};

struct SessionParams {
  bool simulated_time = true;
  bool each_look = false;  // every look (an empty poll or a yield) takes a turn
  std::uint64_t seed = 1;
  std::uint64_t epoch = 1'700'000'000;              // Unix time in seconds at simulated time 0
  std::uint64_t uptime = 12'345;                    // seconds from the hosts' boot to simulated time 0
  abi::ProcessorSet processors = own_processors();  // shown to programs
};

class SystemCalls : public CallHandler {
 public:
  SystemCalls(const SessionParams& params, std::vector<HostServices> hosts, TimeKeeper& keeper, Network& network,
              AttachServer& server, DescriptorBudget& budget);

  // True: there are descriptors for one more process. False: the guest was refused.
  bool has_room(Guest& guest, std::uint32_t host);
  // Attaches a process to `host`, started by a launcher, a user or `parent`. Its thread 0 runs from `start`.
  Process& admit(Guest guest, std::uint32_t host, Process* parent, Duration start);
  std::optional<std::uint32_t> host_named(const std::string& name) const;
  std::function<void(Process&)> on_exit;

  bool execute(Thread& thread) override;
  void collect_all(Duration at) override { network_.collect(at); }
  int descriptor() const override { return network_.descriptor(); }
  void mmio_write(Process& process, const abi::MmioWrite& write) override;
  void milestone(Process& process, const abi::Milestone& milestone) override;
  Duration quiet_until(std::uint32_t host, Duration next) const override;
  Duration quiet_until_doorbell(std::uint32_t host, Duration next) const override;
  void process_died(Process& process) override;
  void process_stopped(Process& process, int signal) override;
  bool lacks_descriptors(const Process& process, const char* what) override;
  std::uint32_t new_tid(const Process& process) override { return next_pid_[process.identity().host]++; }

 private:
  // For one access to a program's memory. Long, since the machine may swap.
  static constexpr std::chrono::seconds kStallPatience{5};

  struct Family {  // children of a process, for wait(2)
    std::vector<Process*> running;
    std::vector<Process*> ended;
  };

  bool process_call(Thread& thread, abi::ThreadSlot& slot);
  int pin(Process& process, abi::ThreadSlot& slot);
  int unpin(Process& process, abi::ThreadSlot& slot);
  bool set_aside(Thread& thread, abi::ThreadSlot& slot);
  int put_aside(Process& process, abi::ThreadSlot& slot);
  bool make_present(Thread& thread, abi::ThreadSlot& slot);
  bool resolve_path(Thread& thread, abi::ThreadSlot& slot);
  int pages_moved(Process& process, abi::ThreadSlot& slot);
  int huge_pages(Process& process, abi::ThreadSlot& slot);
  ProcessMemory::FirstPinned first_pinned(Process& process);
  static void end_stall(int process, int calls);
  bool memory_call(Thread& thread, abi::ThreadSlot& slot);
  bool device_memory_call(Thread& thread, abi::ThreadSlot& slot);
  bool device_call(Thread& thread, abi::ThreadSlot& slot);
  bool await_event(Thread& thread, abi::ThreadSlot& slot);
  bool network_call(Thread& thread, abi::ThreadSlot& slot);
  bool stream_call(Thread& thread, abi::ThreadSlot& slot);
  int find_inherited(abi::ThreadSlot& slot, std::uint32_t host) const;
  bool datagram_call(abi::ThreadSlot& slot, std::uint32_t host);
  bool new_datagrams(Thread& thread, abi::ThreadSlot& slot);

  std::optional<Guest> await_hello(pid_t pid, const Process& waiting, const std::string& who,
                                   const std::function<bool()>& came_back);
  bool check_image(Thread& thread, abi::ThreadSlot& slot);
  bool new_child(Thread& thread, abi::ThreadSlot& slot);
  bool exec(Thread& thread, abi::ThreadSlot& slot);
  void detach(Process& process);
  void kill(const Process& process, const char* why);
  bool await_exit(Process& process);
  std::vector<Process*> signalled_by(const Process& sender, std::int64_t number);
  bool is_unreaped(const Process& sender, std::int64_t number);
  bool send_signal(Thread& thread, abi::ThreadSlot& slot);
  bool find_process(const Process& asking, abi::ThreadSlot& slot);
  // A process on the same host as `asking`; nullptr: none.
  using IsWanted = std::function<bool(const Process::Identity&)>;
  Process* find_neighbour(const Process& asking, const IsWanted& is_wanted);
  Process* process_of(const Process& asking, std::uint64_t virtual_pid);
  Thread* thread_of(Thread& asking, std::uint64_t number);
  bool affinity(Thread& asking, abi::ThreadSlot& slot);
  bool wait_child(Thread& thread, abi::ThreadSlot& slot);
  bool answer_wait(Thread& thread, abi::ThreadSlot& slot);
  void wake_parent(Process& parent);
  bool command(Thread& thread, abi::ThreadSlot& slot);
  bool context_call(Thread& thread, abi::ThreadSlot& slot);
  bool new_context(Thread& thread, abi::ThreadSlot& slot);
  bool domain_call(Thread& thread, abi::ThreadSlot& slot);
  int open_domain(Thread& thread, abi::ThreadSlot& slot);
  bool open_channel(Thread& thread, abi::ThreadSlot& slot);
  bool mmio_read(Thread& thread, abi::ThreadSlot& slot);
  bool connect(Thread& thread, abi::ThreadSlot& slot, Network::Number number);
  bool accept(Thread& thread, abi::ThreadSlot& slot, Network::Number number);
  void fill_control(Process& process) const;
  void equip(Process& process);
  void join_device(Process& process);
  HostServices& host_of(const Process& process) { return hosts_[process.identity().host]; }
  HugePages& huge_pages_of(const Process& process) { return huge_pages_[process.identity().host]; }
  // nullptr: the host has no such device.
  host::KernelAgent* agent_of(const Process& process, std::uint32_t device);
  // For calls whose device number execute() has checked.
  host::KernelAgent& agent_of(const Thread& thread) { return *agent_of(*thread.process, slot_of(thread).device); }
  // Finds the thread again when its call is answered later. Returns nullptr when the thread no longer waits in
  // `state`.
  std::function<Thread*()> waiting_thread(Thread& thread, ThreadState state);

  const SessionParams params_;
  std::vector<HostServices> hosts_;
  std::vector<HugePages> huge_pages_;  // by host
  TimeKeeper& keeper_;
  Network& network_;
  AttachServer& server_;
  DescriptorBudget& budget_;
  SystemV system_v_;
  std::set<std::string> shortages_;  // texts that were already logged
  std::map<Process*, Family> families_;
  Duration least_doorbell_;              // shortest latency of an MMIO write, of all hosts
  std::vector<std::uint32_t> next_pid_;  // by host
  std::uint32_t next_order_ = 0;
  StallGuard stalls_{kStallPatience, &SystemCalls::end_stall};
};

}  // namespace rnicsim::sim
