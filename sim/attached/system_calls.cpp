// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/system_calls.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "model/abi/device.h"
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

// Opens the pipe's write end again: a file description that the program does not share, and that never blocks.
Descriptor own_end(const Descriptor& pipe) {
  struct stat file {};
  if (::fstat(pipe.get(), &file) != 0 || !S_ISFIFO(file.st_mode)) return {};
  const std::string path = fmt::format("/proc/self/fd/{}", pipe.get());
  return Descriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
}

}  // namespace

SystemCalls::SystemCalls(const SessionParams& params, std::vector<HostServices> hosts, TimeKeeper& keeper,
                         Network& network, AttachServer& server, DescriptorBudget& budget)
    : params_(params),
      hosts_(std::move(hosts)),
      keeper_(keeper),
      network_(network),
      server_(server),
      budget_(budget),
      system_v_(keeper, hosts_.size(), params.epoch),
      next_pid_(hosts_.size()) {
  for (std::uint32_t host = 0; host < hosts_.size(); ++host) next_pid_[host] = kFirstPid * (host + 1);
  for (const auto& host : hosts_) huge_pages_.emplace_back(host.params->huge_pages);
  const auto doorbell = [](const HostServices& host) { return host.params->mmio_write_latency; };
  least_doorbell_ = doorbell(*std::ranges::min_element(hosts_, {}, doorbell));
  keeper_.set_handler(*this);
  network_.on_arrival = [this] { keeper_.descriptors_may_be_ready(); };
  for (std::uint32_t index = 0; index < hosts_.size(); ++index) {
    const auto written = [this, index](const host::DmaWrite& write) {
      if (write.pasid == kKernelPasid) return;
      for (const auto& process : keeper_.processes())
        if (process->alive && process->identity().host == index && process->pasid == write.pasid)
          keeper_.memory_written(*process, write.address, write.length);
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

std::optional<std::uint32_t> SystemCalls::host_named(const std::string& name) const {
  for (std::uint32_t index = 0; index < hosts_.size(); ++index)
    if (name == hosts_[index].name) return index;
  return std::nullopt;
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

// Called for every image.
void SystemCalls::equip(Process& process) {
  process.address_space().guard(stalls_);
  process.address_space().join(keeper_.turns_of(process.identity().host));
  process.address_space().write_at_once(!params_.simulated_time);
  process.address_space().first_pinned = first_pinned(process);
  process.address_space().lost_write = [&process, this](std::uint64_t address, std::uint64_t bytes) {
    host_of(process).kernel->page_faults().withdraw(process.pasid, address, bytes, {});
    host::log_error(fmt::format("{}: {}: the device wrote {} bytes at {:#x}, which the program has unmapped",
                                host_of(process).name, process.label(), bytes, address));
    host_of(process).agents.front()->root_complex().iommu().lost_write(process.pasid, address, bytes);
  };
}

// The PASID and the shared memory, pinned as a whole, exist from the start.
void SystemCalls::join_device(Process& process) {
  host::HostKernel& kernel = *host_of(process).kernel;
  process.pasid = kernel.attach(process.address_space());
  kernel.pin(process.pasid, abi::kMemoryAddress, abi::kMemoryBytes);
}

// Descriptors of a process: socket, pidfd, control region, DMA memory.
bool SystemCalls::has_room(Guest& guest, std::uint32_t host) {
  constexpr std::size_t kPerProcess = 4;
  if (budget_.take_for_process(kPerProcess)) return true;
  const std::string why = budget_.shortage();
  host::log_error(fmt::format("{}: {} is refused: {}", hosts_[host].name, guest.hello.program, why));
  AttachServer::refuse(guest, EMFILE, why);
  return false;
}

// For an object that holds one descriptor while it exists. Logged once for each process and kind.
bool SystemCalls::lacks_descriptors(const Process& process, const char* what) {
  if (budget_.take_for_object(1)) return false;
  std::string text = fmt::format("{}: {} is refused a {}", host_of(process).name, process.label(), what);
  if (shortages_.insert(text).second) host::log_error(fmt::format("{}: {}", text, budget_.shortage()));
  return true;
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
  equip(*process);
  if (parent != nullptr) families_[parent].running.push_back(process.get());
  Process& added = keeper_.add(std::move(process), start);
  if (random_addresses) keeper_.disturbed(random_addresses_of(added, host_of(added).name));
  join_device(added);
  AttachServer::welcome(added);
  return added;
}

bool SystemCalls::execute(Thread& thread) {
  ThreadSlot& slot = thread.process->slot(thread.index);
  const Call call = slot.call;
  if (call <= Call::none || call >= Call::count) return answer(slot, ENOSYS);
  if (call <= Call::wait_child) return process_call(thread, slot);
  const bool of_device = call >= Call::alloc_pd && call <= Call::mmio_read;
  if (of_device && agent_of(*thread.process, slot.device) == nullptr) return answer(slot, ENODEV);
  if (call <= Call::free_uar) return memory_call(thread, slot);
  if (call <= Call::import_pd) return context_call(thread, slot);
  if (call <= Call::open_qp) return domain_call(thread, slot);
  if (call <= Call::import_dm) return device_memory_call(thread, slot);
  if (call <= Call::mmio_read) return device_call(thread, slot);
  if (call >= Call::sem_get) return system_v_.execute(thread);
  return network_call(thread, slot);
}

host::KernelAgent* SystemCalls::agent_of(const Process& process, std::uint32_t device) {
  const auto& agents = host_of(process).agents;
  return device < agents.size() ? agents[device] : nullptr;
}

void SystemCalls::mmio_write(Process& process, const abi::MmioWrite& write) {
  const std::size_t length = std::min<std::size_t>(write.length, sizeof write.data);
  const std::span bytes(reinterpret_cast<const std::byte*>(write.data), length);
  host::KernelAgent* agent = agent_of(process, write.device);
  if (length == write.length && agent != nullptr &&
      agent->mmio_write(process.pasid, write.offset, Payload::copy_of(bytes)))
    return;
  host::log_error(fmt::format(
      "{}: {}: a write of {} bytes at BAR offset {:#x} was dropped: the page does not belong to the process",
      host_of(process).name, process.label(), write.length, write.offset));
}

void SystemCalls::milestone(Process& process, const abi::Milestone& milestone) {
  if (host::KernelAgent* agent = agent_of(process, milestone.device)) agent->software({process.pasid, milestone});
}

// --- Contexts.

bool SystemCalls::context_call(Thread& thread, ThreadSlot& slot) {
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

bool SystemCalls::new_context(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  host::KernelAgent& kernel = agent_of(thread);
  auto descriptors = process.receive_descriptors(thread.index);
  struct stat status {};
  if (descriptors.empty() || ::fstat(descriptors.front().get(), &status) != 0) return answer(slot, EINVAL);
  if (lacks_descriptors(process, "context")) return answer(slot, EMFILE);
  const host::ContextFile file{status.st_dev, status.st_ino};
  std::uint32_t number = 0;
  const int error = slot.call == Call::open_context ? kernel.open_context(process.pasid, file, number)
                                                    : kernel.import_context(process.pasid, file, number);
  if (error == 0) process.contexts.emplace(std::pair(slot.device, number), std::move(descriptors.front()));
  slot.value = number;
  return answer(slot, error);
}

// --- The device's own memory.

bool SystemCalls::device_memory_call(Thread& thread, ThreadSlot& slot) {
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

bool SystemCalls::domain_call(Thread& thread, ThreadSlot& slot) {
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

int SystemCalls::open_domain(Thread& thread, ThreadSlot& slot) {
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
    if (lacks_descriptors(process, "XRC domain")) return EMFILE;
    error = kernel.open_xrcd(process.pasid, host::ContextFile{status.st_dev, status.st_ino}, flags, number);
    if (error == 0) process.domains.emplace(std::pair(slot.device, number), std::move(descriptors.front()));
  }
  slot.value = number;
  return error;
}

// --- The device.

std::function<Thread*()> SystemCalls::waiting_thread(Thread& thread, ThreadState state) {
  return [process = thread.process, index = thread.index, state]() -> Thread* {
    if (!process->alive || index >= process->threads.size()) return nullptr;
    Thread& thread = process->threads[index];
    return thread.state == state ? &thread : nullptr;
  };
}

bool SystemCalls::device_call(Thread& thread, ThreadSlot& slot) {
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

bool SystemCalls::resolve_path(Thread& thread, ThreadSlot& slot) {
  host::KernelAgent& kernel = agent_of(thread);
  abi::AddressVector path;
  std::memcpy(static_cast<void*>(&path), slot.input, sizeof path);
  const int error = kernel.resolve_path(path);
  put_output(slot, path);
  if (error != ETIMEDOUT) return answer(slot, error);
  const auto waiting = waiting_thread(thread, ThreadState::awaiting_device);
  keeper_.wait(thread, ThreadState::awaiting_device, std::nullopt);
  kernel.await_neighbour(thread.process->pasid, [this, waiting] {
    if (Thread* thread = waiting()) keeper_.resume(*thread, now(), ETIMEDOUT);
  });
  return false;
}

bool SystemCalls::command(Thread& thread, ThreadSlot& slot) {
  const std::uint32_t input_bytes = slot.input_bytes;
  if (input_bytes > sizeof slot.input) return answer(slot, EINVAL);
  std::vector<std::byte> input(slot.input, slot.input + input_bytes);
  const Duration back = host_of(*thread.process).params->cpu.command;
  const auto waiting = waiting_thread(thread, ThreadState::awaiting_device);
  keeper_.wait(thread, ThreadState::awaiting_device, std::nullopt);
  agent_of(thread).command(thread.process->pasid, std::uint32_t(slot.argument[0]), std::move(input),
                           [this, waiting, back](int error, std::span<const std::byte> output) {
                             Thread* thread = waiting();
                             if (thread == nullptr) return;
                             ThreadSlot& slot = slot_of(*thread);
                             std::ranges::copy(output.first(std::min(output.size(), sizeof slot.output)), slot.output);
                             keeper_.resume(*thread, now() + back, error);
                           });
  return false;
}

bool SystemCalls::open_channel(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  auto descriptors = process.receive_descriptors(thread.index);
  if (descriptors.empty()) return answer(slot, EBADF);
  if (lacks_descriptors(process, "channel")) return answer(slot, EMFILE);
  auto sink = std::make_shared<Descriptor>(own_end(descriptors.front()));
  if (!*sink) return answer(slot, EBADF);
  slot.value = agent_of(thread).open_channel(process.pasid, [this, &process, sink](const abi::EventRecord& event) {
    // The pipe is full when thousands of events are unread.
    const bool written = ::write(sink->get(), &event, sizeof event) == ssize_t(sizeof event);
    keeper_.interrupted(process);
    keeper_.pipe_written(process, *sink);
    keeper_.descriptors_may_be_ready();
    return written;
  });
  process.channels[{slot.device, std::uint32_t(slot.value)}] = sink;
  return true;
}

bool SystemCalls::await_event(Thread& thread, ThreadSlot& slot) {
  const auto& channels = thread.process->channels;
  const auto found = channels.find({slot.device, std::uint32_t(slot.argument[0])});
  if (found == channels.end()) return answer(slot, ENOENT);
  // The thread found the pipe empty in its turn.
  const bool written_since = thread.process->memory_writes != thread.seen_memory_writes;
  int bytes = 0;
  if (written_since && ::ioctl(found->second->get(), FIONREAD, &bytes) == 0 && bytes > 0) return true;
  keeper_.await_pipe(thread, *found->second);
  return false;
}

bool SystemCalls::mmio_read(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  const auto offset = std::uint32_t(slot.argument[0]);
  const auto bytes = std::uint32_t(slot.argument[1]);
  if ((bytes != 4 && bytes != 8) || !agent_of(thread).mmio_readable(process.pasid, offset, bytes))
    return answer(slot, EFAULT);
  const auto waiting = waiting_thread(thread, ThreadState::awaiting_device);
  keeper_.wait(thread, ThreadState::awaiting_device, std::nullopt);
  agent_of(thread).root_complex().mmio_read(offset, bytes, [this, waiting](std::uint64_t value) {
    Thread* thread = waiting();
    if (thread == nullptr) return;
    thread->process->slot(thread->index).value = value;
    keeper_.resume(*thread, now());
  });
  return false;
}

}  // namespace rnicsim::sim
