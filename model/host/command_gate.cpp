// SPDX-License-Identifier: Apache-2.0
#include "model/host/command_gate.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "model/base/group_mac.h"
#include "verbs/provider/commands.h"

namespace rnicsim::host {
namespace {

using abi::CommandOpcode;

CommandOpcode opcode_of(std::span<const std::byte> input) {
  return CommandOpcode(std::uint16_t(provider::decode<abi::CommandHeader>(input).opcode));
}

Gid group_of(std::span<const std::byte> input) {
  return std::to_array(provider::decode<abi::MulticastGroup>(input).gid);
}

// Writes the pages that the kernel chose into the context. With pages, bus_address is unused.
void put_pages(abi::Mpt& context, const RegionPlace& place) {
  context.log_page = place.log_page;
  context.first_page = place.first_page;
  if (place.log_page != 0) context.bus_address = 0u;
}

// A QP of XRC is requester or responder only: the other side's attributes are ignored.
std::uint32_t ignored_attributes(abi::Transport transport) {
  using namespace abi::qp_attr;
  if (transport == abi::Transport::xrc_send) return kMaxDestRdAtomic | kMinRnrTimer;
  return transport == abi::Transport::xrc_recv ? kRetryCount | kRnrRetry | kMaxRdAtomic : 0;
}

template <class Mailbox>
void replace(std::span<std::byte> input, const Mailbox& mailbox) {
  std::memcpy(input.data(), &mailbox, sizeof mailbox);
}

}  // namespace

int CommandGate::admit(Pasid process, std::vector<std::byte>& input) {
  if (input.size() < sizeof(abi::CommandHeader) || input.size() > abi::kMailboxBytes) return EINVAL;
  switch (opcode_of(input)) {
    case CommandOpcode::query_device:
    case CommandOpcode::query_port:
    case CommandOpcode::query_port_counters: return 0;
    case CommandOpcode::create_cq:
      return input.size() < sizeof(abi::CreateCq) ? EINVAL : admit_create_cq(process, input);
    case CommandOpcode::create_mpt:
      return input.size() < sizeof(abi::CreateMpt) ? EINVAL : admit_create_mpt(process, input);
    case CommandOpcode::modify_mpt:
      return input.size() < sizeof(abi::CreateMpt) ? EINVAL : admit_modify_mpt(process, input);
    case CommandOpcode::create_srq:
      return input.size() < sizeof(abi::CreateSrq) ? EINVAL : admit_create_srq(process, input);
    case CommandOpcode::create_qp:
      return input.size() < sizeof(abi::CreateQp) ? EINVAL : admit_create_qp(process, input);
    case CommandOpcode::modify_qp:
      return input.size() < sizeof(abi::ModifyQp) ? EINVAL : admit_modify_qp(process, input);
    case CommandOpcode::create_rss:
      return input.size() < sizeof(abi::CreateRss) ? EINVAL : admit_create_rss(process, input);
    case CommandOpcode::create_flow:
      return input.size() < sizeof(abi::CreateFlow) ? EINVAL : admit_create_flow(process, input);
    case CommandOpcode::create_counter: return admit_create_counter(process, input);
    default: return admit_use(process, input);
  }
}

// Commands that name an object and carry no context.
int CommandGate::admit_use(Pasid process, std::span<const std::byte> input) {
  const std::uint32_t object = provider::decode<abi::CommandHeader>(input).object;
  const auto exists = [&](auto& table) { return Objects::find(table, process, object) ? 0 : ENOENT; };
  const auto is_unused = [&](auto& table) {
    const auto* found = Objects::find(table, process, object);
    return !found ? ENOENT : found->users != 0 ? EBUSY : 0;
  };
  switch (opcode_of(input)) {
    case CommandOpcode::destroy_cq: return is_unused(objects_.cqs);
    case CommandOpcode::destroy_srq: return is_unused(objects_.srqs);
    case CommandOpcode::destroy_rss: return is_unused(objects_.rss_contexts);
    case CommandOpcode::destroy_counter: return is_unused(objects_.counters);
    case CommandOpcode::destroy_flow: return exists(objects_.flows);
    case CommandOpcode::query_counter: return exists(objects_.counters);
    case CommandOpcode::query_cq: return exists(objects_.cqs);
    case CommandOpcode::query_srq: return exists(objects_.srqs);
    case CommandOpcode::modify_cq:
    case CommandOpcode::resize_cq:
      static_assert(sizeof(abi::ModifyCq) == sizeof(abi::ResizeCq));
      return input.size() < sizeof(abi::ModifyCq) ? EINVAL : exists(objects_.cqs);
    case CommandOpcode::modify_srq: return input.size() < sizeof(abi::ModifySrq) ? EINVAL : exists(objects_.srqs);
    case CommandOpcode::destroy_mpt:
    case CommandOpcode::query_mpt:
      return objects_.find_usable(objects_.mrs, process, object) ? 0 : exists(objects_.mws);
    case CommandOpcode::destroy_qp: return admit_destroy_qp(process, object);
    case CommandOpcode::query_qp: return objects_.find_qp(process, object) ? 0 : ENOENT;
    case CommandOpcode::attach_multicast:
    case CommandOpcode::detach_multicast:
      if (input.size() < sizeof(abi::MulticastGroup)) return EINVAL;
      if (exists(objects_.qps) != 0) return ENOENT;
      return is_group(group_of(input)) ? 0 : EINVAL;
    default: return EPERM;
  }
}

int CommandGate::admit_create_cq(Pasid process, std::span<std::byte> input) {
  auto mailbox = provider::decode<abi::CreateCq>(input);
  const std::uint32_t vector = mailbox.context.eqn;
  if (!Objects::find(objects_.uars, process, mailbox.context.uar_page)) return EINVAL;
  if (vector >= vectors_.count) return EINVAL;
  const auto cqn = objects_.cq_numbers.take();
  if (!cqn) return ENOMEM;
  mailbox.header.object = *cqn;
  mailbox.context.pasid = process;
  mailbox.context.eqn = vectors_.first_completion_eqn + vector;
  replace(input, mailbox);
  objects_.add_cq(*cqn, {.owner = process, .uar = mailbox.context.uar_page, .users = 0});
  return 0;
}

int CommandGate::admit_create_mpt(Pasid process, std::span<std::byte> input) {
  auto mailbox = provider::decode<abi::CreateMpt>(input);
  if (!objects_.find_usable(objects_.pds, process, mailbox.context.pd)) return ENOENT;
  const auto index = objects_.mr_numbers.take();
  if (!index) return ENOMEM;
  mailbox.header.object = *index;
  mailbox.context.pasid = process;
  // The process chooses the tag, the last byte of the key.
  mailbox.context.key = *index << 8 | (mailbox.context.key & 0xff);
  int error = 0;
  switch (mailbox.context.kind) {
    case abi::MptKind::region:
    case abi::MptKind::null:
    case abi::MptKind::device_memory: error = admit_create_region(process, mailbox); break;
    case abi::MptKind::window1:
    case abi::MptKind::window2: objects_.add_mw(*index, {.owner = process, .pd = mailbox.context.pd}); break;
    default: error = EINVAL;
  }
  if (error != 0) objects_.mr_numbers.give_back(*index);
  replace(input, mailbox);
  return error;
}

int CommandGate::admit_create_region(Pasid process, abi::CreateMpt& mailbox) {
  RegionPlace place{.pd = mailbox.context.pd};
  if (mailbox.context.kind == abi::MptKind::null) {
    mailbox.context.length = 0;
  } else if (mailbox.context.kind == abi::MptKind::device_memory) {
    if (const int error = place_on_device(process, mailbox.context, place)) return error;
  } else if (const int error = place_region(process, mailbox.context, place)) {
    return error;
  }
  put_pages(mailbox.context, place);
  objects_.add_mr(mailbox.header.object, {.owner = process, .place = place, .next = {}});
  return 0;
}

int CommandGate::place_on_device(Pasid process, const abi::Mpt& context, RegionPlace& place) const {
  place.bus_address = context.bus_address;
  place.length = context.length;
  place.device_range = objects_.find_device_range(process, place.bus_address, place.length);
  return place.device_range ? 0 : EINVAL;
}

int CommandGate::place_region(Pasid process, const abi::Mpt& context, RegionPlace& place) {
  place.bus_address = context.bus_address;
  place.length = context.length;
  place.on_demand = (context.access_flags & abi::access::kOnDemand) != 0;
  if (place.on_demand) {
    place.first_page = place.pages = 0;
    place.log_page = 0;
    return place.length != 0 && place.bus_address > ~std::uint64_t{0} - (place.length - 1) ? EINVAL : 0;
  }
  if (place.length > objects_.max_mr_size) return EINVAL;
  // The region's start is the start of its first page: alignment would make the page count depend on the run's
  // addresses.
  const ByteCount page = page_size(process, place.bus_address, place.length);
  place.log_page = static_cast<std::uint8_t>(std::countr_zero(page.bytes));
  const std::uint64_t wanted = place.length == 0 ? 0 : (place.length - 1) / page.bytes + 1;
  if (wanted > ~std::uint32_t{0}) return ENOMEM;
  place.pages = static_cast<std::uint32_t>(wanted);
  const auto first_page = objects_.pages.take(place.pages);
  if (!first_page) return ENOMEM;
  place.first_page = *first_page;
  return 0;
}

int CommandGate::admit_modify_mpt(Pasid process, std::span<std::byte> input) {
  auto mailbox = provider::decode<abi::CreateMpt>(input);
  auto* mr = Objects::find(objects_.mrs, process, mailbox.header.object);
  if (!mr || !objects_.find_usable(objects_.pds, process, mailbox.context.pd)) return ENOENT;
  if (mailbox.context.kind != abi::MptKind::region || mr->place.device_range) return EINVAL;
  auto next = mr->place;
  next.pd = mailbox.context.pd;
  const bool on_demand = (mailbox.context.access_flags & abi::access::kOnDemand) != 0;
  const bool stays = next.bus_address == mailbox.context.bus_address && next.length == mailbox.context.length &&
                     next.on_demand == on_demand;
  if (!stays)
    if (const int error = place_region(process, mailbox.context, next)) return error;
  mailbox.context.pasid = process;
  mailbox.context.key = mailbox.header.object << 8 | (mailbox.context.key & 0xff);
  put_pages(mailbox.context, next);
  replace(input, mailbox);
  objects_.begin_move(*mr, next);
  return 0;
}

int CommandGate::admit_create_srq(Pasid process, std::span<std::byte> input) {
  auto mailbox = provider::decode<abi::CreateSrq>(input);
  if (!objects_.find_usable(objects_.pds, process, mailbox.context.pd)) return ENOENT;
  const bool extended = mailbox.context.flags & abi::Srqc::kXrc;
  if (extended && !objects_.domains.has(process, mailbox.context.xrcd)) return EINVAL;
  if (extended && !Objects::find(objects_.cqs, process, mailbox.context.cqn)) return ENOENT;
  const auto srqn = objects_.srq_numbers.take();
  if (!srqn) return ENOMEM;
  mailbox.header.object = *srqn;
  mailbox.context.pasid = process;
  replace(input, mailbox);
  SharedReceiveQueue srq{.owner = process, .pd = mailbox.context.pd};
  if (extended) {
    srq.xrcd = mailbox.context.xrcd;
    srq.cqn = mailbox.context.cqn;
  }
  objects_.add_srq(*srqn, srq);
  return 0;
}

// The queue pair belongs to the domain: the kernel owns its context, and it uses no queue of a process.
int CommandGate::admit_create_domain_qp(Pasid process, std::span<std::byte> input) {
  auto mailbox = provider::decode<abi::CreateQp>(input);
  if (!objects_.domains.has(process, mailbox.context.xrcd)) return EINVAL;
  const auto qpn = objects_.qp_numbers.take();
  if (!qpn) return ENOMEM;
  abi::Qpc context;
  context.transport = abi::Transport::xrc_recv;
  context.pasid = kKernelPasid;
  context.xrcd = mailbox.context.xrcd;
  mailbox.header.object = *qpn;
  mailbox.context = context;
  replace(input, mailbox);
  QueuePair qp{.owner = kKernelPasid, .transport = context.transport};
  qp.xrcd = context.xrcd;
  qp.handles = {{process}};
  objects_.add_qp(*qpn, qp);
  return 0;
}

int CommandGate::admit_create_qp(Pasid process, std::span<std::byte> input) {
  auto mailbox = provider::decode<abi::CreateQp>(input);
  auto& context = mailbox.context;
  if (context.transport == abi::Transport::xrc_recv) return admit_create_domain_qp(process, input);
  if (context.transport == abi::Transport::xrc_send) context.receive_cqn = context.send_cqn;
  const bool needs_privilege = context.transport == abi::Transport::raw || context.source_qpn != 0;
  if (needs_privilege && !raw_packets_) return EPERM;
  if (!objects_.find_usable(objects_.pds, process, context.pd)) return ENOENT;
  if (!Objects::find(objects_.cqs, process, context.send_cqn)) return ENOENT;
  if (!Objects::find(objects_.cqs, process, context.receive_cqn)) return ENOENT;
  if (!Objects::find(objects_.uars, process, context.uar_page)) return EINVAL;
  std::optional<std::uint32_t> srqn;
  if (context.flags & abi::Qpc::kHasSrq) srqn = context.srqn;
  if (srqn && !Objects::find(objects_.srqs, process, *srqn)) return ENOENT;
  const auto qpn = objects_.qp_numbers.take();
  if (!qpn) return ENOMEM;
  mailbox.header.object = *qpn;
  mailbox.context.pasid = process;
  replace(input, mailbox);
  objects_.add_qp(*qpn, {.owner = process,
                         .pd = context.pd,
                         .uar = context.uar_page,
                         .send_cqn = context.send_cqn,
                         .receive_cqn = context.receive_cqn,
                         .srqn = srqn,
                         .transport = context.transport});
  return 0;
}

int CommandGate::admit_modify_qp(Pasid process, std::span<std::byte> input) {
  auto mailbox = provider::decode<abi::ModifyQp>(input);
  const auto* qp = objects_.find_qp(process, mailbox.header.object);
  if (!qp) return ENOENT;
  mailbox.attributes = mailbox.attributes & ~ignored_attributes(qp->transport);
  mailbox.context.pasid = process;
  if (mailbox.attributes & abi::qp_attr::kPath)
    if (const int error = resolve_host(mailbox.context.path)) return error;
  if (mailbox.attributes & abi::qp_attr::kAlternatePath)
    if (const int error = resolve_host(mailbox.context.alternate_path)) return error;
  replace(input, mailbox);
  return 0;
}

int CommandGate::admit_destroy_qp(Pasid process, std::uint32_t qpn) {
  auto* qp = objects_.find_qp(process, qpn);
  if (!qp) return ENOENT;
  if (qp->users != 0) return EBUSY;
  qp->going = qp->handles.size() == 1;
  return 0;
}

bool CommandGate::closes_handle(Pasid process, std::uint32_t events, std::span<const std::byte> input) {
  if (opcode_of(input) != CommandOpcode::destroy_qp) return false;
  auto& qp = objects_.qps.at(provider::decode<abi::CommandHeader>(input).object);
  return qp.xrcd && objects_.close_handle(qp, process, events);
}

bool CommandGate::is_raw_qp(Pasid process, std::uint32_t qpn) const {
  const auto* qp = Objects::find(objects_.qps, process, qpn);
  return qp != nullptr && qp->transport == abi::Transport::raw;
}

int CommandGate::admit_create_rss(Pasid process, std::span<std::byte> input) {
  auto mailbox = provider::decode<abi::CreateRss>(input);
  if (mailbox.log_queues > abi::CreateRss::kMostLogQueues) return EINVAL;
  const std::span queues = std::span(mailbox.queues).first(std::size_t{1} << mailbox.log_queues);
  if (!std::ranges::all_of(queues, [&](std::uint32_t qpn) { return is_raw_qp(process, qpn); })) return ENOENT;
  const auto number = objects_.qp_numbers.take();
  if (!number) return ENOMEM;
  mailbox.header.object = *number;
  replace(input, mailbox);
  objects_.add_rss(*number, {.owner = process, .qpns = {queues.begin(), queues.end()}});
  return 0;
}

bool CommandGate::may_receive_flow(Pasid process, std::uint32_t qpn) const {
  return is_raw_qp(process, qpn) || Objects::find(objects_.rss_contexts, process, qpn) != nullptr;
}

int CommandGate::admit_create_flow(Pasid process, std::span<std::byte> input) {
  auto mailbox = provider::decode<abi::CreateFlow>(input);
  if (!raw_packets_) return EPERM;
  if (!may_receive_flow(process, mailbox.qpn)) return ENOENT;
  std::optional<std::uint32_t> counter;
  if (mailbox.flags & abi::CreateFlow::kCount) counter = mailbox.counter;
  if (counter && !Objects::find(objects_.counters, process, *counter)) return ENOENT;
  const auto number = objects_.flow_numbers.take();
  if (!number) return ENOMEM;
  mailbox.header.object = *number;
  replace(input, mailbox);
  objects_.add_flow(*number, {.owner = process, .qpn = mailbox.qpn, .counter = counter});
  return 0;
}

int CommandGate::admit_create_counter(Pasid process, std::span<std::byte> input) {
  auto mailbox = provider::decode<abi::CommandHeader>(input);
  const auto number = objects_.counter_numbers.take();
  if (!number) return ENOMEM;
  mailbox.object = *number;
  replace(input, mailbox);
  objects_.counters.emplace(*number, FlowCounter{.owner = process});
  return 0;
}

// A connected QP has one peer: a multicast address is refused.
int CommandGate::resolve_host(abi::AddressVector& path) const {
  return is_group(std::to_array(path.remote_gid)) ? EINVAL : resolve(path);
}

int CommandGate::resolve(abi::AddressVector& path) const {
  if (path.sgid_index >= gids_.size()) return EINVAL;
  const Gid remote = std::to_array(path.remote_gid);
  const auto group = mac_of_group(remote);
  const auto mac = group ? group : neighbours_.resolve(remote);
  if (!mac) return is_on_link(link_, remote) ? ETIMEDOUT : EHOSTUNREACH;
  std::ranges::copy(*mac, path.remote_mac);
  return 0;
}

std::optional<CommandGate::Context> CommandGate::context_of(std::span<const std::byte> input) {
  const std::uint32_t object = provider::decode<abi::CommandHeader>(input).object;
  switch (opcode_of(input)) {
    case CommandOpcode::create_cq: return Context{abi::IcmTable::cqc, object};
    case CommandOpcode::create_mpt: return Context{abi::IcmTable::mpt, object};
    case CommandOpcode::create_srq: return Context{abi::IcmTable::srqc, object};
    case CommandOpcode::create_qp: return Context{abi::IcmTable::qpc, object};
    default: return std::nullopt;
  }
}

std::optional<CommandGate::Context> CommandGate::destroyed_by(std::span<const std::byte> input) {
  const std::uint32_t object = provider::decode<abi::CommandHeader>(input).object;
  switch (opcode_of(input)) {
    case CommandOpcode::destroy_cq: return Context{abi::IcmTable::cqc, object};
    case CommandOpcode::destroy_mpt: return Context{abi::IcmTable::mpt, object};
    case CommandOpcode::destroy_srq: return Context{abi::IcmTable::srqc, object};
    case CommandOpcode::destroy_qp: return Context{abi::IcmTable::qpc, object};
    default: return std::nullopt;
  }
}

std::optional<CommandGate::Pages> CommandGate::pages_of(std::span<const std::byte> input) const {
  const auto opcode = opcode_of(input);
  if (opcode != CommandOpcode::create_mpt && opcode != CommandOpcode::modify_mpt) return std::nullopt;
  const auto mr = objects_.mrs.find(provider::decode<abi::CommandHeader>(input).object);
  if (mr == objects_.mrs.end()) return std::nullopt;
  const auto& [owner, place, next] = mr->second;
  if (next && next->has_pages_of(place)) return std::nullopt;
  const auto& pages = next ? *next : place;
  return Pages{pages.first_page, pages.pages, pages.bus_address, ByteCount{std::uint64_t{1} << pages.log_page}};
}

// New settings replace old ones in the range, since the memory was remapped.
void CommandGate::back(Pasid process, std::uint64_t begin, std::uint64_t bytes, ByteCount page) {
  auto& backings = backings_[process];
  const std::uint64_t end = begin + bytes;
  std::vector<Backing> kept;
  for (const Backing& old : backings) {
    if (old.begin < begin) kept.push_back({old.begin, std::min(old.end, begin), old.page});
    if (old.end > end) kept.push_back({std::max(old.begin, end), old.end, old.page});
  }
  if (page_size_ < page) kept.push_back({begin, end, page});
  std::ranges::sort(kept, {}, &Backing::begin);
  backings = std::move(kept);
}

// For adjacent mappings: the smallest of their pages.
ByteCount CommandGate::page_size(Pasid process, std::uint64_t begin, std::uint64_t bytes) const {
  const auto found = backings_.find(process);
  if (found == backings_.end()) return page_size_;
  std::optional<ByteCount> page;
  std::uint64_t covered = begin;
  for (const Backing& backing : found->second) {
    if (covered < backing.begin || covered >= backing.end) continue;
    page = std::min(page.value_or(backing.page), backing.page);
    covered = backing.end;
    if (covered - begin >= bytes) return *page;
  }
  return page_size_;
}

void CommandGate::settle(std::span<const std::byte> input, abi::CommandStatus status) {
  const std::uint32_t object = provider::decode<abi::CommandHeader>(input).object;
  const bool ok = status == abi::CommandStatus::ok;
  switch (opcode_of(input)) {
    case CommandOpcode::create_cq:
      if (!ok) objects_.remove_cq(object);
      break;
    case CommandOpcode::create_mpt:
      if (!ok) objects_.remove_mpt(object);
      break;
    case CommandOpcode::create_srq:
      if (!ok) objects_.remove_srq(object);
      break;
    case CommandOpcode::create_qp:
      if (!ok) objects_.remove_qp(object);
      break;
    case CommandOpcode::create_rss:
      if (!ok) objects_.remove_rss(object);
      break;
    case CommandOpcode::create_flow:
      if (!ok) objects_.remove_flow(object);
      break;
    case CommandOpcode::create_counter:
      if (!ok) objects_.remove_counter(object);
      break;
    case CommandOpcode::destroy_cq:
      if (ok) objects_.remove_cq(object);
      break;
    case CommandOpcode::destroy_srq:
      if (ok) objects_.remove_srq(object);
      break;
    case CommandOpcode::destroy_mpt:
      if (ok) objects_.remove_mpt(object);
      break;
    case CommandOpcode::modify_mpt: objects_.end_move(objects_.mrs.at(object), ok); break;
    case CommandOpcode::destroy_qp:
      objects_.qps.at(object).going = false;
      if (ok) objects_.remove_qp(object);
      break;
    case CommandOpcode::destroy_rss:
      if (ok) objects_.remove_rss(object);
      break;
    case CommandOpcode::destroy_flow:
      if (ok) objects_.remove_flow(object);
      break;
    case CommandOpcode::destroy_counter:
      if (ok) objects_.remove_counter(object);
      break;
    case CommandOpcode::attach_multicast:
      if (ok) objects_.qps.at(object).groups.insert(group_of(input));
      break;
    case CommandOpcode::detach_multicast:
      if (ok) objects_.qps.at(object).groups.erase(group_of(input));
      break;
    default: break;
  }
}

}  // namespace rnicsim::host
