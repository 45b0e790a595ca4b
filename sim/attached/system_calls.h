// SPDX-License-Identifier: Apache-2.0
// Calls of attached processes to the operating system of their simulated host. TimeKeeper executes calls about time;
// here are calls about processes and signals. Calls about memory, devices and sockets go to their classes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/attached/attach_server.h"
#include "sim/attached/attached_hosts.h"
#include "sim/attached/descriptor_account.h"
#include "sim/attached/descriptor_budget.h"
#include "sim/attached/device/device_calls.h"
#include "sim/attached/ipc/system_v.h"
#include "sim/attached/native/processors.h"
#include "sim/attached/network/network.h"
#include "sim/attached/network/network_calls.h"
#include "sim/attached/processes/memory_calls.h"
#include "sim/attached/time/time_keeper.h"

namespace rnicsim::sim {

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
  bool has_room(Guest& guest, std::uint32_t host) { return descriptors_.has_room(guest, host); }
  // Attaches a process to `host`, started by a launcher, a user or `parent`. Its thread 0 runs from `start`.
  Process& admit(Guest guest, std::uint32_t host, Process* parent, Duration start);
  std::optional<std::uint32_t> host_named(const std::string& name) const { return hosts_.named(name); }
  std::function<void(Process&)> on_exit;

  bool execute(Thread& thread) override;
  void collect_all(Duration at) override { network_.collect(at); }
  int descriptor() const override { return network_.descriptor(); }
  void mmio_write(Process& process, const abi::MmioWrite& write) override { device_.mmio_write(process, write); }
  void milestone(Process& process, const abi::Milestone& milestone) override { device_.milestone(process, milestone); }
  Duration quiet_until(std::uint32_t host, Duration next) const override;
  Duration quiet_until_doorbell(std::uint32_t host, Duration next) const override;
  void process_died(Process& process) override;
  void process_stopped(Process& process, int signal) override;
  bool lacks_descriptors(const Process& process, const char* what) override {
    return descriptors_.lacks(process, what);
  }
  std::uint32_t new_tid(const Process& process) override { return next_pid_[process.identity().host]++; }

 private:
  struct Family {  // children of a process, for wait(2)
    std::vector<Process*> running;
    std::vector<Process*> ended;
  };

  bool process_call(Thread& thread, abi::ThreadSlot& slot);
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
  bool answer_wait(const Thread& thread, const WaitForChild& wait, abi::ThreadSlot& slot);
  void wake_parent(Process& parent);
  void fill_control(Process& process) const;
  void join_device(Process& process);

  const SessionParams params_;
  const AttachedHosts hosts_;
  TimeKeeper& keeper_;
  Network& network_;
  AttachServer& server_;
  DescriptorAccount descriptors_;
  MemoryCalls memory_;
  DeviceCalls device_;
  NetworkCalls network_calls_;
  SystemV system_v_;
  std::map<Process*, Family> families_;
  Duration least_doorbell_;              // shortest latency of an MMIO write, of all hosts
  std::vector<std::uint32_t> next_pid_;  // by host
  std::uint32_t next_order_ = 0;
};

}  // namespace rnicsim::sim
