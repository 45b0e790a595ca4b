// SPDX-License-Identifier: Apache-2.0
#include "model/host/kernel_agent.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <stdexcept>

#include "model/abi/device.h"
#include "model/host/cm/rdma_cm.h"
#include "model/host/host_kernel.h"
#include "model/host/log.h"
#include "verbs/provider/commands.h"

namespace rnicsim::host {
namespace {

constexpr std::uint32_t kPort = 1;

// Sizes of one store of the CPU: a doorbell word, or whole lines through a write-combining buffer.
bool is_store_size(std::size_t bytes) {
  return bytes == 4 || bytes == 8 || (bytes != 0 && bytes % 64 == 0 && bytes <= abi::uar::kBlueFlameBytes);
}

}  // namespace

KernelAgent::KernelAgent(sc_core::sc_module_name name, const HostParams& params, HostKernel& kernel,
                         RootComplex& root_complex, const abi::NetworkInterface& interface)
    : sc_module(name),
      params_(params),
      kernel_(kernel),
      root_complex_(root_complex),
      interface_(interface),
      gids_(gids_of(interface)),
      driver_(params, root_complex),
      gate_(objects_, gids_, kernel.fabric(), {Driver::kFirstCompletionEqn, params.completion_vectors},
            params.page_size, params.raw_packets, interface),
      management_(driver_) {
  SC_HAS_PROCESS(KernelAgent);
  root_complex_.interrupt.bind([this](std::uint32_t vector) {
    driver_.interrupt(vector, [this](const abi::Eqe& eqe) {
      ++counters_.events;
      event_taken({eqe.type, eqe.number});
      if (ManagementPort::is_for_it(eqe)) return take_arrivals();
      channels_.deliver(eqe);
    });
  });
  SC_THREAD(run);
  kernel.join(*this);
}

void KernelAgent::back(Pasid process, std::uint64_t address, std::uint64_t bytes, ByteCount page) {
  gate_.back(process, address, bytes, page);
}

int KernelAgent::alloc_pd(Pasid process, std::uint32_t& number) {
  return ready_ ? objects_.alloc_pd(process, number) : EAGAIN;
}
int KernelAgent::dealloc_pd(Pasid process, std::uint32_t number) {
  return ready_ ? objects_.dealloc_pd(process, number) : EAGAIN;
}
int KernelAgent::alloc_uar(Pasid process, std::uint32_t& page) {
  return ready_ ? objects_.alloc_uar(process, page) : EAGAIN;
}
int KernelAgent::free_uar(Pasid process, std::uint32_t page) {
  return ready_ ? objects_.free_uar(process, page) : EAGAIN;
}
int KernelAgent::alloc_dm(Pasid process, std::uint64_t bytes, std::uint64_t log_alignment, std::uint32_t& offset) {
  if (!ready_) return EAGAIN;
  if (driver_.capabilities().device_memory == 0) return EOPNOTSUPP;
  const int error = objects_.alloc_dm(process, bytes, log_alignment, offset);
  if (error == 0) clear_device_memory(offset);
  return error;
}
int KernelAgent::free_dm(Pasid process, std::uint32_t offset) { return objects_.free_dm(process, offset); }
int KernelAgent::import_dm(Pasid process, std::uint32_t context, std::uint32_t offset, std::uint32_t& bytes) const {
  return objects_.import_dm(process, context, offset, bytes);
}
// Zeroes the range by stores, which reach the device before any store of the process.
void KernelAgent::clear_device_memory(std::uint32_t offset) {
  constexpr std::uint32_t kStore = abi::uar::kBlueFlameBytes;
  Payload zeros(kStore);
  std::ranges::fill(zeros.writable(), std::byte{});
  const auto& range = objects_.device_ranges.at(offset);
  for (std::uint32_t at = 0; at < range.pages() * DeviceRange::kPage; at += kStore)
    root_complex_.mmio_write(abi::kDeviceMemoryBase + offset + at, Payload(zeros));
}
int KernelAgent::open_context(Pasid process, const ContextFile& file, std::uint32_t& number) {
  return objects_.open_context(process, file, number);
}
int KernelAgent::import_context(Pasid process, const ContextFile& file, std::uint32_t& number) {
  return objects_.import_context(process, file, number);
}
int KernelAgent::close_context(Pasid process, std::uint32_t number) { return objects_.close_context(process, number); }
int KernelAgent::import_pd(Pasid process, std::uint32_t context, std::uint32_t number) const {
  return objects_.import_pd(process, context, number);
}

int KernelAgent::open_xrcd(Pasid process, const std::optional<ContextFile>& file, int flags, std::uint32_t& number) {
  if (!ready_) return EAGAIN;
  return objects_.domains.open(process, file, (flags & O_CREAT) != 0, (flags & O_EXCL) != 0, number);
}
int KernelAgent::close_xrcd(Pasid process, std::uint32_t number) { return objects_.domains.close(process, number); }
int KernelAgent::open_qp(Pasid process, std::uint32_t xrcd, std::uint32_t qpn, std::uint32_t events) {
  if (events != 0 && !channels_.owns(process, events)) return ENOENT;
  return objects_.open_qp(process, xrcd, qpn, events != 0 ? std::optional(events) : std::nullopt);
}

int KernelAgent::gid_entry(std::uint32_t port, std::uint32_t index, abi::GidEntry& entry) const {
  constexpr std::uint32_t kRoceV2 = 2;
  if (port != kPort || index >= gid_table_length()) return EINVAL;
  if (index >= gids_.size()) return ENODATA;
  entry = {.index = index, .type = kRoceV2, .port = port};
  std::ranges::copy(gids_[index], entry.gid);
  return 0;
}

int KernelAgent::lid_route(std::uint16_t lid, abi::GidEntry& route) const {
  const auto gid = gate_.neighbours().gid_of(lid);
  if (!gid) return ENOENT;
  if (const int error = gid_entry(kPort, kIpv4GidIndex, route)) return error;
  std::ranges::copy(*gid, route.gid);
  return 0;
}

int KernelAgent::resolve_path(abi::AddressVector& path) const { return gate_.resolve(path); }

std::uint32_t KernelAgent::open_channel(Pasid process, EventSink sink) {
  return channels_.open(process, std::move(sink));
}
int KernelAgent::close_channel(Pasid process, std::uint32_t channel) {
  const int error = channels_.close(process, channel);
  if (error == 0 && interface_.device == 0) kernel_.cm().close_channel(channel);
  return error;
}
int KernelAgent::bind_completions(Pasid process, std::uint32_t cqn, std::uint32_t channel) {
  return channels_.bind_completions(process, cqn, channel);
}
int KernelAgent::bind_events(Pasid process, std::uint32_t channel) { return channels_.bind_events(process, channel); }
int KernelAgent::refill_channel(Pasid process, std::uint32_t channel) { return channels_.refill(process, channel); }

bool KernelAgent::owns_channel(Pasid process, std::uint32_t channel) const { return channels_.owns(process, channel); }
void KernelAgent::deliver_connection(std::uint32_t channel, std::uint32_t id) {
  channels_.deliver_connection(channel, id);
}
void KernelAgent::forget_connection(std::uint32_t channel, std::uint32_t id) {
  channels_.forget_connection(channel, id);
}

std::uint32_t KernelAgent::gid_table_length() const {
  if (!ready_) return static_cast<std::uint32_t>(gids_.size());
  return driver_.port().gid_table_length;
}

KernelCounters KernelAgent::counters() const {
  KernelCounters counters = counters_;
  counters.cm = kernel_.cm().counters();
  counters.on_demand = kernel_.page_faults().counters();
  return counters;
}

void KernelAgent::forget(Pasid process, std::function<void()> done) {
  channels_.close_all(process);
  objects_.close_contexts(process);  // at once, since the dead process no longer keeps the files open
  enqueue([this, process, done = std::move(done)] {
    destroy_objects_of(process);
    gate_.forget(process);
    done();
  });
}

void KernelAgent::command(Pasid process, std::uint32_t events, std::vector<std::byte> input, CommandDone done) {
  enqueue([this, process, events, input = std::move(input), done = std::move(done)]() mutable {
    if (!kernel_.knows(process)) return;
    std::vector<std::byte> output;
    const int error = carry(process, events, input, output);
    if (!kernel_.knows(process)) return;
    if (error == ETIMEDOUT) return await_neighbour(process, [done = std::move(done)] { done(ETIMEDOUT, {}); });
    done(error, output);
  });
}

void KernelAgent::await_neighbour(Pasid process, std::function<void()> done) {
  unanswered_.push(now() + params_.cm.neighbour_timeout, [this, process, done = std::move(done)] {
    if (kernel_.knows(process)) done();
  });
}

void KernelAgent::give_up_neighbours() {
  std::function<void()> done;
  while (unanswered_.pop_due(done)) done();
}

int KernelAgent::make_present(Pasid process, std::uint32_t region, std::uint64_t address, std::uint64_t bytes,
                              bool writable, std::function<void(int)> done) {
  const auto* mr = Objects::find(objects_.mrs, process, region);
  if (mr == nullptr || !mr->place.on_demand) return ENOENT;
  const auto& place = mr->place;
  const bool inside = address >= place.bus_address && address - place.bus_address <= place.length &&
                      bytes <= place.length - (address - place.bus_address);
  if (!inside) return EFAULT;
  kernel_.page_faults().make_present(process, address, bytes, writable,
                                     [this, process, done = std::move(done)](int error) {
                                       if (kernel_.knows(process)) done(error);
                                     });
  return 0;
}

bool KernelAgent::mmio_write(Pasid process, std::uint32_t offset, Payload&& data) {
  if (!is_store_size(data.size()) || !owns_window(process, offset, data.size())) {
    ++counters_.mmio_refused;
    log_warning(fmt::format("{}: a process wrote {} bytes to BAR offset {:#x}, which is not in its pages",
                            interface_.name, data.size(), offset));
    return false;
  }
  root_complex_.mmio_write(offset, std::move(data));
  return true;
}

bool KernelAgent::mmio_readable(Pasid process, std::uint32_t offset, std::size_t bytes) const {
  // Every process may read the clock, as a page that is mapped read-only.
  return offset == abi::reg::kClock || owns_window(process, offset, bytes);
}

void KernelAgent::run() {
  try {
    driver_.bring_up(gids_, mac_of(interface_));
    management_.bring_up();
  } catch (const std::runtime_error& error) {
    failure_ = error.what();
    return;
  }
  objects_.set_limits(driver_.capabilities());
  ready_ = true;
  if (management_.available())
    kernel_.cm().add(interface_, {management_, gate_, driver_.port(), driver_.capabilities().local_ca_ack_delay});
  kernel_.device_is_up();
  for (;;) {
    while (work_.empty()) sleep_on(more_work_);
    const auto work = std::move(work_.front());
    work_.pop_front();
    work();
  }
}

void KernelAgent::take_arrivals() {
  management_.interrupt(
      [this](const ManagementPort::Arrival& arrival) { kernel_.cm().arrived(interface_.device, arrival); });
}

void KernelAgent::enqueue(std::function<void()> work) {
  work_.push_back(std::move(work));
  wake(more_work_);
}

int KernelAgent::carry(Pasid process, std::uint32_t events, std::vector<std::byte>& input,
                       std::vector<std::byte>& output) {
  const bool heard = events == 0 || channels_.owns(process, events);
  const int error = heard ? prepare(process, input) : ENOENT;
  if (error == 0 && gate_.closes_handle(process, events, input)) {
    const abi::CommandResult ok;
    const auto answer = provider::encode(ok);
    output.assign(answer.begin(), answer.end());
    return 0;
  }
  if (error != 0) {
    ++counters_.commands_refused;
  } else {
    if (const auto context = CommandGate::context_of(input); context && events != 0)
      channels_.bind_object(context->table, context->index, events);
    Driver::Answer answer = driver_.execute(input);
    ++counters_.commands;
    gate_.settle(input, answer.status);
    output = std::move(answer.output);
    if (answer.status == abi::CommandStatus::ok) follow_up(input, output);
  }
  if (command_answered) tell(process, input, error, output);
  return error;
}

// Handles effects of a command beyond the objects' records.
void KernelAgent::follow_up(std::span<const std::byte> input, std::span<std::byte> output) {
  if (const auto context = CommandGate::destroyed_by(input)) channels_.forget_object(context->table, context->index);
  const auto opcode = abi::CommandOpcode(std::uint16_t(provider::decode<abi::CommandHeader>(input).opcode));
  if (opcode != abi::CommandOpcode::query_device) return;
  auto capabilities = provider::decode<abi::DeviceCapabilities>(output);
  Objects::leave_to_processes(capabilities);
  std::memcpy(output.data(), &capabilities, sizeof capabilities);
}

int KernelAgent::prepare(Pasid process, std::vector<std::byte>& input) {
  if (const int error = gate_.admit(process, input)) return error;
  const auto context = CommandGate::context_of(input);
  if ((!context || driver_.lend(context->table, context->index)) && register_pages(input)) return 0;
  gate_.settle(input, abi::CommandStatus::exceeds_limit);
  return ENOMEM;
}

// Writes the region's pages into the MTT before the device executes the command.
bool KernelAgent::register_pages(std::span<const std::byte> input) {
  const auto pages = gate_.pages_of(input);
  if (!pages || pages->count == 0) return true;
  if (!driver_.write_pages(pages->first, pages->count, pages->bus_address, pages->size)) return false;
  counters_.pages_registered += pages->count;
  sleep_until(now() + params_.cpu.register_page * std::int64_t{pages->count});
  return true;
}

void KernelAgent::tell(Pasid process, std::span<const std::byte> input, int error,
                       std::span<const std::byte> output) const {
  const auto command = provider::decode<abi::CommandHeader>(input);
  const auto result = provider::decode<abi::CommandResult>(output);
  command_answered({process, abi::CommandOpcode(std::uint16_t(command.opcode)), command.object, error, result.status,
                    result.syndrome, input, output});
}

void KernelAgent::destroy_objects_of(Pasid process) {
  detach_groups(process);
  destroy_all(process, objects_.flows, abi::CommandOpcode::destroy_flow);
  destroy_all(process, objects_.rss_contexts, abi::CommandOpcode::destroy_rss);
  destroy_all(process, objects_.counters, abi::CommandOpcode::destroy_counter);
  destroy_all(process, objects_.qps, abi::CommandOpcode::destroy_qp);
  leave_domain_qps(process);
  destroy_all(process, objects_.srqs, abi::CommandOpcode::destroy_srq);
  destroy_all(process, objects_.cqs, abi::CommandOpcode::destroy_cq);
  destroy_all(process, objects_.mws, abi::CommandOpcode::destroy_mpt);
  destroy_windows_on(process);
  destroy_all(process, objects_.mrs, abi::CommandOpcode::destroy_mpt);
  objects_.remove_software_objects(process);
}

// Detaches QPs from multicast groups: the device does not destroy an attached QP.
void KernelAgent::detach_groups(Pasid process) {
  std::vector<abi::MulticastGroup> mailboxes;
  for (const auto& [qpn, qp] : objects_.qps)
    if (qp.owner == process)
      for (const Gid& group : qp.groups) mailboxes.push_back(provider::detach_multicast(qpn, group));
  for (const auto& mailbox : mailboxes)
    gate_.settle(provider::encode(mailbox), driver_.execute(provider::encode(mailbox)).status);
}

void KernelAgent::leave_domain_qps(Pasid process) {
  std::vector<std::uint32_t> last;
  for (auto& [qpn, qp] : objects_.qps)
    if (qp.xrcd && objects_.find_qp(process, qpn) != nullptr && !objects_.close_handles(qp, process))
      last.push_back(qpn);
  for (const std::uint32_t qpn : last) objects_.qps.at(qpn).going = true;
  for (const std::uint32_t qpn : last) destroy(qpn, abi::CommandOpcode::destroy_qp);
}

template <class Object>
void KernelAgent::destroy_all(Pasid process, const std::map<std::uint32_t, Object>& objects,
                              abi::CommandOpcode opcode) {
  std::vector<std::uint32_t> mine;
  for (const auto& [number, object] : objects)
    if (object.owner == process) mine.push_back(number);
  for (const std::uint32_t number : mine) destroy(number, opcode);
}

// Destroys windows on the process's regions: the device does not destroy a region with windows. The windows may belong
// to a process that shares the PD.
void KernelAgent::destroy_windows_on(Pasid process) {
  std::set<std::uint32_t> pds;
  for (const auto& [index, mr] : objects_.mrs)
    if (mr.owner == process) pds.insert(mr.place.pd);
  std::vector<std::uint32_t> windows;
  for (const auto& [index, mw] : objects_.mws)
    if (pds.contains(mw.pd)) windows.push_back(index);
  for (const std::uint32_t index : windows) destroy(index, abi::CommandOpcode::destroy_mpt);
}

void KernelAgent::destroy(std::uint32_t number, abi::CommandOpcode opcode) {
  const auto mailbox = provider::header(opcode, number);
  const auto answer = driver_.execute(provider::encode(mailbox));
  gate_.settle(provider::encode(mailbox), answer.status);
  if (answer.status != abi::CommandStatus::ok)
    log_error(fmt::format("{}: the device keeps object {:#x} of a dead process (command {:#x}, status {:#x})",
                          interface_.name, number, unsigned(opcode), unsigned(answer.status)));
}

bool KernelAgent::owns_window(Pasid process, std::uint32_t offset, std::size_t bytes) const {
  if (offset < abi::kUarBase || offset >= abi::kBarSize) return false;
  if (offset >= abi::kDeviceMemoryBase)
    return objects_.may_access_device_memory(process, offset - abi::kDeviceMemoryBase, bytes);
  const std::uint32_t page = (offset - abi::kUarBase) / abi::kUarPageSize;
  const std::uint32_t within = (offset - abi::kUarBase) % abi::kUarPageSize;
  const auto found = objects_.uars.find(page);
  return found != objects_.uars.end() && found->second.owner == process && within + bytes <= abi::kUarPageSize;
}

}  // namespace rnicsim::host
