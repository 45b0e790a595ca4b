// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/system_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "model/host/log.h"

namespace rnicsim::sim {
namespace {

using abi::Call;
using abi::ThreadSlot;

// Hosts count from different numbers, as the process numbers of real hosts differ by chance.
constexpr std::uint32_t kFirstPid = 1000;

std::string random_addresses_of(const Process& process, const std::string& host) {
  return fmt::format(
      "{}: {} has different addresses in each run, because personality(ADDR_NO_RANDOMIZE) was refused; in a container: "
      "docker run --security-opt seccomp=unconfined",
      host, process.identity().program);
}

}  // namespace

SystemCalls::SystemCalls(const SessionParams& params, std::vector<HostServices> hosts, TimeKeeper& keeper,
                         Network& network, AttachServer& server, DescriptorBudget& budget)
    : params_(params),
      hosts_(std::move(hosts)),
      keeper_(keeper),
      network_(network),
      server_(server),
      descriptors_(budget, hosts_),
      memory_(hosts_, keeper, !params.simulated_time),
      device_(hosts_, keeper, descriptors_),
      network_calls_(network, keeper, descriptors_),
      system_v_(keeper, hosts_.all().size(), params.epoch),
      next_pid_(hosts_.all().size()) {
  const std::size_t hosts_count = hosts_.all().size();
  for (std::uint32_t host = 0; host < hosts_count; ++host) next_pid_[host] = kFirstPid * (host + 1);
  const auto doorbell = [](const HostServices& host) { return host.params->mmio_write_latency; };
  least_doorbell_ = doorbell(*std::ranges::min_element(hosts_.all(), {}, doorbell));
  keeper_.set_handler(*this);
  network_.on_arrival = [this] { keeper_.threads().descriptors_may_be_ready(); };
  for (std::uint32_t index = 0; index < hosts_count; ++index) {
    const auto written = [this, index](const host::DmaWrite& write) {
      if (write.pasid == kKernelPasid) return;
      for (const auto& process : keeper_.threads().processes())
        if (process->alive && process->identity().host == index && process->pasid == write.pasid)
          keeper_.memory_waits().written(*process, write.address, write.length);
    };
    for (host::KernelAgent* agent : hosts_[index].agents) agent->root_complex().dma_written.subscribe(written);
  }
}

Duration SystemCalls::quiet_until(std::uint32_t host, Duration next) const {
  const auto& quiet = hosts_[host].quiet_until;
  return quiet ? quiet(next) : next;
}

// Software reaches this host's memory only through a doorbell and a later DMA write.
Duration SystemCalls::quiet_until_doorbell(std::uint32_t host, Duration next) const {
  return quiet_until(host, next + least_doorbell_);
}

void SystemCalls::fill_control(Process& process) const {
  const auto& identity = process.identity();
  const HostServices& host = hosts_[identity.host];
  abi::ControlHeader& header = process.header();
  header = abi::ControlHeader{};
  header.features = params_.simulated_time ? abi::attach_feature::kSimulatedTime : 0;
  if (params_.simulated_time && host.agents.front()->software) header.features |= abi::attach_feature::kMilestones;
  if (params_.each_look) header.features |= abi::attach_feature::kEachLook;
  header.epoch = params_.epoch;
  header.uptime = params_.uptime;
  header.random_seed = params_.seed * 0x9e3779b97f4a7c15ull + identity.host * 65536ull + identity.virtual_pid;
  header.virtual_pid = identity.virtual_pid;
  header.virtual_parent_pid = process.parent_pid();
  header.host_index = identity.host;
  const auto& interfaces = host.kernel->fabric().interfaces();
  header.interface_count = std::uint32_t(interfaces.size());
  host.name.copy(header.host, sizeof header.host - 1);
  for (std::uint32_t i = 0; i < std::uint32_t(abi::CpuCost::count); ++i)
    header.cost[i] = std::uint32_t(host.params->cpu.cost(abi::CpuCost(i)).ps);
  header.processors = params_.processors;
  auto* table = reinterpret_cast<abi::NetworkInterface*>(process.control().data() + abi::kInterfaceTable);
  std::copy_n(interfaces.begin(), header.interface_count, table);
}

// The PASID and the shared memory, pinned as a whole, exist from the start.
void SystemCalls::join_device(Process& process) {
  host::HostKernel& kernel = *hosts_.of(process).kernel;
  process.pasid = kernel.attach(process.address_space());
  kernel.pin(process.pasid, abi::kMemoryAddress, abi::kMemoryBytes);
}

Process& SystemCalls::admit(Guest guest, std::uint32_t host, Process* parent, Duration start) {
  Process::Identity identity;
  identity.host = host;
  identity.order = next_order_++;
  identity.pid = pid_t(guest.hello.pid);
  identity.virtual_pid = next_pid_[host]++;
  identity.program = guest.hello.program;
  const std::uint32_t tid = guest.hello.tid;
  const bool random_addresses = (guest.hello.flags & abi::Hello::kRandomAddresses) != 0;
  auto process = std::make_unique<Process>(std::move(identity), std::move(guest.socket));
  process->parent = parent;
  fill_control(*process);
  process->slot(0).tid = tid;
  process->slot(0).virtual_tid = process->identity().virtual_pid;
  memory_.equip(*process);
  if (parent != nullptr) families_[parent].running.push_back(process.get());
  Process& added = keeper_.add(std::move(process), start);
  if (random_addresses) keeper_.disturbed(random_addresses_of(added, hosts_.of(added).name));
  join_device(added);
  AttachServer::welcome(added);
  return added;
}

bool SystemCalls::execute(Thread& thread) {
  ThreadSlot& slot = thread.process->slot(thread.index);
  const Call call = slot.call;
  if (call <= Call::none || call >= Call::count) return answer(slot, ENOSYS);
  if (call <= Call::wait_child) return process_call(thread, slot);
  if (call < Call::alloc_pd) return memory_.execute(thread, slot);
  if (call <= Call::mmio_read) return device_.execute(thread, slot);
  if (call >= Call::sem_get) return system_v_.execute(thread);
  return network_calls_.execute(thread, slot);
}

}  // namespace rnicsim::sim
