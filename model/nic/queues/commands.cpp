// SPDX-License-Identifier: Apache-2.0
// The commands, one function each; the table lists their requirements.
#include <algorithm>

#include "model/base/group_mac.h"
#include "model/nic/queues/command_unit.h"
#include "model/roce/qp_state.h"

namespace rnicsim::nic {
namespace {

constexpr std::uint32_t kLocalCaAckDelay = 15;
constexpr std::uint32_t kAtomicOnDevice = 1;  // IBV_ATOMIC_HCA
// PortInfo (IBTA vol 1, 14.2.5.6): PortState and PortPhysicalState.
constexpr std::uint8_t kPortDown = 1, kPortActive = 4;
constexpr std::uint8_t kPolling = 2, kLinkUp = 5;
constexpr std::uint8_t kMaxLogQueue = 22;

// Saturates a 16-bit counter.
std::uint16_t saturated(std::uint64_t count) {
  return static_cast<std::uint16_t>(std::min<std::uint64_t>(count, 0xffff));
}

// The driver's fields of an entry; fields that the device maintains are initialised.
MemoryRegion entry_of(const MemoryRegion& given, const CapabilityParams& params) {
  if (given.is_window()) return {.kind = given.kind, .key = given.key, .pd = given.pd};
  auto entry = given;
  entry.valid = entry.kind != RegionKind::fast_register;
  if (!params.relaxed_ordering) entry.access &= ~access::kRelaxedOrdering;
  entry.region = entry.qpn = entry.windows = 0;
  return entry;
}

constexpr std::uint16_t kLastVlan = 4094;  // IEEE 802.1Q: 4095 is reserved

}  // namespace

struct CommandUnit::Handler {
  CommandOpcode opcode;
  bool needs_ready;
  void (CommandUnit::*execute)();
};

const CommandUnit::Handler& CommandUnit::handler_of(CommandOpcode opcode) {
  using U = CommandUnit;
  static constexpr Handler kHandlers[] = {
      {CommandOpcode::query_device, false, &U::query_device},
      {CommandOpcode::initialize, false, &U::initialize},
      {CommandOpcode::teardown, false, &U::tear_down},
      {CommandOpcode::map_icm, false, &U::map_icm},
      {CommandOpcode::unmap_icm, false, &U::unmap_icm},
      {CommandOpcode::query_port, false, &U::query_port},
      {CommandOpcode::set_gid, false, &U::set_gid},
      {CommandOpcode::query_port_counters, false, &U::query_port_counters},
      {CommandOpcode::create_eq, true, &U::create_eq},
      {CommandOpcode::destroy_eq, true, &U::destroy_eq},
      {CommandOpcode::create_cq, true, &U::create_cq},
      {CommandOpcode::destroy_cq, true, &U::destroy_cq},
      {CommandOpcode::query_cq, true, &U::query_cq},
      {CommandOpcode::modify_cq, true, &U::modify_cq},
      {CommandOpcode::resize_cq, true, &U::resize_cq},
      {CommandOpcode::create_mpt, true, &U::create_mpt},
      {CommandOpcode::destroy_mpt, true, &U::destroy_mpt},
      {CommandOpcode::query_mpt, true, &U::query_mpt},
      {CommandOpcode::modify_mpt, true, &U::modify_mpt},
      {CommandOpcode::create_srq, true, &U::create_srq},
      {CommandOpcode::destroy_srq, true, &U::destroy_srq},
      {CommandOpcode::query_srq, true, &U::query_srq},
      {CommandOpcode::modify_srq, true, &U::modify_srq},
      {CommandOpcode::create_qp, true, &U::create_qp},
      {CommandOpcode::destroy_qp, true, &U::destroy_qp},
      {CommandOpcode::modify_qp, true, &U::modify_qp},
      {CommandOpcode::query_qp, true, &U::query_qp},
      {CommandOpcode::attach_multicast, true, &U::attach_multicast},
      {CommandOpcode::detach_multicast, true, &U::detach_multicast},
      {CommandOpcode::create_rss, true, &U::create_rss},
      {CommandOpcode::destroy_rss, true, &U::destroy_rss},
      {CommandOpcode::create_flow, true, &U::create_flow},
      {CommandOpcode::destroy_flow, true, &U::destroy_flow},
      {CommandOpcode::create_counter, true, &U::create_counter},
      {CommandOpcode::destroy_counter, true, &U::destroy_counter},
      {CommandOpcode::query_counter, true, &U::query_counter},
  };
  return *std::ranges::find(kHandlers, opcode, &Handler::opcode);
}

void CommandUnit::input_read(std::uint64_t epoch, AccessResult result, const Payload& data) {
  if (epoch != epoch_) return;
  const bool ok = result == AccessResult::ok;
  taken({current_->index, current_->entry, ok ? data.bytes() : std::span<const std::byte>()});
  if (!ok) return complete(CommandStatus::bad_mailbox);
  auto& command = current_->command;
  command = personality_.decode_command(data.bytes(), current_->entry.output_bytes);
  if (command.refused != CommandStatus::ok) return complete(command.refused);
  const auto& handler = handler_of(command.opcode);
  if (handler.needs_ready && pcie_.status() != DeviceStatus::ready)
    return refuse(CommandSyndrome::not_ready, CommandStatus::bad_state);
  (this->*handler.execute)();
}

void CommandUnit::query_device() {
  const auto& layout = personality_.layout;
  DeviceCapabilities caps;
  caps.features = params_.features();
  caps.max_mr_size = params_.max_mr_size;
  caps.vendor_part_id = params_.vendor_part_id;
  caps.max_qp = params_.max_qp;
  caps.max_qp_wr = params_.max_qp_wr;
  caps.max_send_sge = params_.max_sge;
  caps.max_receive_sge = std::min(params_.max_sge, (1u << kMostLogReceiveStride) / layout.data_segment);
  caps.max_cq = params_.max_cq;
  caps.max_cqe = params_.max_cqe;
  caps.max_cq_moderation_count = static_cast<std::uint16_t>(params_.max_cq_moderation_count);
  caps.max_cq_moderation_period = static_cast<std::uint16_t>(params_.max_cq_moderation_period.ps / (1_us).ps);
  if (params_.srq) {
    caps.max_srq = params_.max_srq;
    caps.max_srq_wr = params_.max_srq_wr;
    caps.max_srq_sge = params_.max_sge;
  }
  if (params_.raw) {
    caps.max_frame = params_.max_frame;
    caps.max_flows = params_.max_flows;
    caps.max_flow_counters = params_.max_flow_counters;
    caps.max_rss = params_.max_rss;
    caps.max_rss_queues = params_.max_rss_queues;
    caps.max_tso = params_.max_tso;
    caps.max_tso_header = CapabilityParams::kMostTsoHeader;
    caps.min_rate_limit = caps.features.pacing ? CapabilityParams::kLeastRateLimit : 0;
    caps.max_rate_limit = params_.max_rate_limit;
  }
  caps.device_memory = params_.device_memory;
  caps.max_mr = params_.max_mr;
  caps.max_mtt = params_.max_mtt;
  caps.max_pd = params_.max_pd;
  caps.max_ah = params_.max_ah;
  caps.max_multicast_groups = params_.max_multicast_groups;
  caps.max_group_qps = params_.max_group_qps;
  caps.max_attached_qps = params_.max_attached_qps;
  caps.max_inline = params_.max_inline;
  caps.max_inline_receive = std::min(params_.max_inline_receive, layout.inline_receive);
  caps.max_rd_atomic = params_.max_rd_atomic;
  caps.local_ca_ack_delay = kLocalCaAckDelay;
  caps.max_eq = params_.max_eq;
  caps.ports = kPortNumber;
  caps.core_clock_khz = pcie_.core_clock_khz();
  caps.atomic = kAtomicOnDevice;
  current_->output = caps;
  complete(CommandStatus::ok);
}

void CommandUnit::initialize() {
  if (pcie_.status() != DeviceStatus::initializing) return refuse(CommandSyndrome::not_ready, CommandStatus::bad_state);
  pcie_.set_status(DeviceStatus::ready);
  complete(CommandStatus::ok);
}

void CommandUnit::tear_down() {
  teardown();
  pcie_.set_status(DeviceStatus::initializing);
  complete(CommandStatus::ok);
}

void CommandUnit::map_icm() {
  const auto& in = input<IcmRange>();
  if (static_cast<std::size_t>(in.table) >= kIcmTables) return refuse(CommandSyndrome::bad_table);
  if (in.memory % kRingAlignment != 0) return refuse(CommandSyndrome::bad_alignment);
  contexts_.map().map(in.table, in.first, in.count, in.memory) ? complete(CommandStatus::ok)
                                                               : refuse(CommandSyndrome::bad_range);
}

void CommandUnit::unmap_icm() {
  const auto& in = input<IcmRange>();
  if (static_cast<std::size_t>(in.table) >= kIcmTables) return refuse(CommandSyndrome::bad_table);
  if (in_use(in.table, in.first, in.count)) return refuse(CommandSyndrome::in_use, CommandStatus::resource_busy);
  contexts_.map().unmap(in.table, in.first, in.count) ? complete(CommandStatus::ok)
                                                      : refuse(CommandSyndrome::bad_range);
}

bool CommandUnit::in_use(IcmTable table, std::uint32_t first, std::uint32_t count) const {
  const auto hit = [&](std::uint32_t index) { return index >= first && index - first < count; };
  switch (table) {
    case IcmTable::qpc: {
      bool any = false;
      contexts_.qps.for_each([&](std::uint32_t qpn, const QpEntry&) { any |= hit(qpn); });
      return any;
    }
    case IcmTable::cqc: return std::ranges::any_of(contexts_.cqs.indices(), hit);
    case IcmTable::eqc: return std::ranges::any_of(contexts_.eqs.indices(), hit);
    case IcmTable::mpt: return std::ranges::any_of(contexts_.regions.indices(), hit);
    case IcmTable::srqc: return std::ranges::any_of(contexts_.srqs.indices(), hit);
    case IcmTable::mtt:
      return std::ranges::any_of(contexts_.page_ranges, [&](const auto& region) {
        const auto& pages = region.second;
        return pages.count != 0 && first < std::uint64_t{pages.first} + pages.count &&
               pages.first < std::uint64_t{first} + count;
      });
  }
  return true;
}

void CommandUnit::query_port() {
  if (object() != kPortNumber) return refuse(CommandSyndrome::number_out_of_range);
  PortAttributes port;
  const bool up = !link_up || link_up();
  port.state = up ? kPortActive : kPortDown;
  port.max_mtu = port.active_mtu = static_cast<std::uint8_t>(params_.max_mtu);
  port.physical_state = up ? kLinkUp : kPolling;
  port.active_speed = static_cast<std::uint8_t>(params_.active_speed);
  port.active_width = static_cast<std::uint8_t>(params_.active_width);
  port.gid_table_length = static_cast<std::uint16_t>(gids_.size());
  port.max_message = params_.max_message;
  port.pkey_table_length = 1;
  const auto counted = violations ? violations() : PortViolations{};
  port.pkey_violations = saturated(counted.pkey);
  port.qkey_violations = saturated(counted.qkey);
  for (std::size_t i = 0; i < port.mac.size(); ++i)
    port.mac[i] = static_cast<std::uint8_t>(params_.mac >> (8 * (port.mac.size() - 1 - i)));
  current_->output = port;
  complete(CommandStatus::ok);
}

void CommandUnit::query_port_counters() {
  if (object() != kPortNumber) return refuse(CommandSyndrome::number_out_of_range);
  current_->output = port_counters ? port_counters() : PortStatistics{};
  complete(CommandStatus::ok);
}

void CommandUnit::set_gid() {
  const auto& in = input<GidSetting>();
  if (object() != kPortNumber) return refuse(CommandSyndrome::number_out_of_range);
  const bool tagged = in.valid && in.vlan != roce::kNoVlan;
  if (tagged && in.vlan > kLastVlan) return refuse(CommandSyndrome::number_out_of_range);
  switch (gids_.set(in.index, {.gid = in.gid, .mac = in.mac, .valid = in.valid, .vlan = in.vlan})) {
    case GidTable::Set::done: gid_tagged(std::uint16_t{in.index}, bool{tagged}); return complete(CommandStatus::ok);
    case GidTable::Set::beyond_table: return refuse(CommandSyndrome::number_out_of_range);
    case GidTable::Set::exists: return refuse(CommandSyndrome::exists, CommandStatus::resource_busy);
  }
}

void CommandUnit::create_eq() {
  const auto eqn = object();
  const auto& eq = input<EventQueueContext>();
  if (eqn >= params_.max_eq) return refuse(CommandSyndrome::number_out_of_range, CommandStatus::exceeds_limit);
  if (contexts_.eqs.exists(eqn)) return refuse(CommandSyndrome::exists, CommandStatus::resource_busy);
  if (!contexts_.eqs.mapped(eqn)) return refuse(CommandSyndrome::no_icm);
  if (eq.log_entries > kMaxLogQueue) return refuse(CommandSyndrome::bad_size);
  if (eq.ring % kRingAlignment != 0) return refuse(CommandSyndrome::bad_alignment);
  if (eq.vector >= personality_.layout.pci.msix_vectors) return refuse(CommandSyndrome::bad_vector);
  contexts_.eqs.create(eqn, eq);
  complete(CommandStatus::ok);
}

void CommandUnit::destroy_eq() {
  const auto eqn = object();
  if (!contexts_.eqs.exists(eqn)) return refuse(CommandSyndrome::no_object, CommandStatus::bad_resource);
  const bool used = std::ranges::any_of(contexts_.cq_eqns, [eqn](const auto& cq) { return cq.second == eqn; });
  if (used) return refuse(CommandSyndrome::in_use, CommandStatus::resource_busy);
  contexts_.eqs.destroy(eqn);
  events_.forget(eqn);
  complete(CommandStatus::ok);
}

void CommandUnit::create_cq() {
  const auto cqn = object();
  const auto& cq = input<CompletionQueue>();
  if (cqn >= params_.max_cq) return refuse(CommandSyndrome::number_out_of_range, CommandStatus::exceeds_limit);
  if (contexts_.cqs.exists(cqn)) return refuse(CommandSyndrome::exists, CommandStatus::resource_busy);
  if (!contexts_.cqs.mapped(cqn)) return refuse(CommandSyndrome::no_icm);
  if (cq.log_entries > kMaxLogQueue) return refuse(CommandSyndrome::bad_size);
  if (cq.ring % kRingAlignment != 0 || cq.doorbell_record % personality_.layout.cq_record != 0)
    return refuse(CommandSyndrome::bad_alignment);
  if (cq.uar_page >= personality_.layout.pci.uar_pages) return refuse(CommandSyndrome::bad_uar_page);
  if (!contexts_.eqs.exists(cq.eqn)) return refuse(CommandSyndrome::no_eq);
  if (!may_moderate(cq.moderation_count, cq.moderation_period)) return refuse(CommandSyndrome::bad_moderation);
  contexts_.cqs.create(cqn, cq);
  contexts_.cq_eqns[cqn] = cq.eqn;
  complete(CommandStatus::ok);
}

void CommandUnit::destroy_cq() {
  const auto cqn = object();
  if (!contexts_.cqs.exists(cqn)) return refuse(CommandSyndrome::no_object, CommandStatus::bad_resource);
  bool used = false;
  contexts_.qps.for_each(
      [&](std::uint32_t, const QpEntry& qp) { used |= qp.send_cqn == cqn || qp.receive_cqn == cqn; });
  used |= std::ranges::any_of(contexts_.xrc_cqns, [cqn](const auto& srq) { return srq.second == cqn; });
  if (used) return refuse(CommandSyndrome::in_use, CommandStatus::resource_busy);
  cq_destroyed(std::uint32_t{cqn});
  contexts_.cqs.destroy(cqn);
  contexts_.cq_eqns.erase(cqn);
  complete(CommandStatus::ok);
}

void CommandUnit::query_cq() {
  const auto cqn = object();
  contexts_.cqs.lookup(cqn, [this](CompletionQueue* cq) {
    if (cq == nullptr) return refuse(CommandSyndrome::no_object, CommandStatus::bad_resource);
    current_->output = *cq;
    complete(CommandStatus::ok);
  });
}

bool CommandUnit::may_moderate(std::uint16_t count, std::uint16_t period) const {
  return count <= params_.max_cq_moderation_count && 1_us * period <= params_.max_cq_moderation_period;
}

void CommandUnit::modify_cq() {
  const auto in = input<CqModeration>();
  if (!may_moderate(in.count, in.period)) return refuse(CommandSyndrome::bad_moderation);
  contexts_.cqs.lookup(object(), [this, in](CompletionQueue* cq) {
    if (cq == nullptr) return refuse(CommandSyndrome::no_object, CommandStatus::bad_resource);
    cq->moderation_count = in.count;
    cq->moderation_period = in.period;
    cq_moderated(std::uint32_t{object()});
    complete(CommandStatus::ok);
  });
}

void CommandUnit::resize_cq() {
  const auto in = input<CqResize>();
  const auto cqn = object();
  if (!contexts_.cqs.exists(cqn)) return refuse(CommandSyndrome::no_object, CommandStatus::bad_resource);
  if (in.log_entries > kMaxLogQueue) return refuse(CommandSyndrome::bad_size);
  if (in.ring % kRingAlignment != 0) return refuse(CommandSyndrome::bad_alignment);
  cq_resize({cqn, in.ring, in.log_entries});
}

void CommandUnit::create_mpt() {
  const auto index = object();
  const auto entry = entry_of(input<MemoryRegion>(), params_);
  if (index >= params_.max_mr) return refuse(CommandSyndrome::number_out_of_range, CommandStatus::exceeds_limit);
  if (contexts_.regions.exists(index)) return refuse(CommandSyndrome::exists, CommandStatus::resource_busy);
  if (!contexts_.regions.mapped(index)) return refuse(CommandSyndrome::no_icm);
  if (entry.is_window() && !params_.windows) return refuse(CommandSyndrome::bad_kind, CommandStatus::not_supported);
  if (entry.kind == RegionKind::device_memory && params_.device_memory == 0)
    return refuse(CommandSyndrome::bad_kind, CommandStatus::not_supported);
  if (entry.on_demand() && !params_.on_demand) return refuse(CommandSyndrome::bad_kind, CommandStatus::not_supported);
  if (entry.kind == RegionKind::fast_register && !params_.fast_register)
    return refuse(CommandSyndrome::bad_kind, CommandStatus::not_supported);
  if (const auto bad = check_entry(index, entry); bad != CommandSyndrome::none) return refuse(bad);
  complete_flushed(put_entry(index, entry));
}

CommandSyndrome CommandUnit::check_entry(std::uint32_t index, const MemoryRegion& entry) const {
  if (entry.kind > RegionKind::fast_register) return CommandSyndrome::bad_kind;
  if (entry.key >> 8 != index) return CommandSyndrome::bad_key;
  const auto room = [&](std::uint64_t base) { return entry.length == 0 || base <= ~0ull - (entry.length - 1); };
  const bool fits = entry.length <= params_.max_mr_size || entry.on_demand();
  if (!fits || !room(entry.start) || !room(entry.bus_address)) return CommandSyndrome::bad_range;
  if (entry.kind == RegionKind::device_memory) {
    if (entry.bus_address > params_.device_memory || entry.length > params_.device_memory - entry.bus_address)
      return CommandSyndrome::bad_range;
    return entry.log_page == 0 ? CommandSyndrome::none : CommandSyndrome::bad_pages;
  }
  if (entry.on_demand() && entry.kind != RegionKind::region) return CommandSyndrome::bad_kind;
  if (entry.on_demand() && entry.log_page != 0) return CommandSyndrome::bad_pages;
  if (entry.kind == RegionKind::fast_register && (entry.log_page == 0 || entry.length == 0))
    return CommandSyndrome::bad_pages;
  return pages_mapped(entry) ? CommandSyndrome::none : CommandSyndrome::bad_pages;
}

// Creates an entry. put_entry() and drop_entry() return the entry's number of pages.
std::uint32_t CommandUnit::put_entry(std::uint32_t index, const MemoryRegion& entry) {
  if (entry.on_demand()) on_demand();
  contexts_.regions.create(index, entry);
  contexts_.page_ranges[index] = {entry.first_page, entry.pages()};
  return entry.pages();
}

std::uint32_t CommandUnit::drop_entry(std::uint32_t index) {
  contexts_.regions.destroy(index);
  const auto pages = contexts_.page_ranges[index];
  contexts_.pages.flush(pages.first, pages.count);
  contexts_.page_ranges.erase(index);
  return pages.count;
}

void CommandUnit::complete_flushed(std::uint32_t pages) {
  flush(pages, [this, epoch = epoch_] {
    if (epoch == epoch_) complete(CommandStatus::ok);
  });
}

// True if the page size is one of CPUs, and every page has an MTT entry.
bool CommandUnit::pages_mapped(const MemoryRegion& region) const {
  if (region.log_page == 0) return true;
  if (region.log_page < kLeastLogPage || region.log_page > kMostLogPage) return false;
  if (region.bus_address >> region.log_page != 0) return false;
  const auto last = region.bus_address + region.length - 1;
  const std::uint64_t pages = region.length == 0 ? 0 : (last >> region.log_page) + 1;
  if (std::uint64_t{region.first_page} + pages > params_.max_mtt) return false;
  return contexts_.map().covers(IcmTable::mtt, region.first_page, static_cast<std::uint32_t>(pages));
}

void CommandUnit::destroy_mpt() {
  const auto index = object();
  if (!contexts_.regions.exists(index)) return refuse(CommandSyndrome::no_object, CommandStatus::bad_resource);
  contexts_.regions.lookup(index, [this, index](const MemoryRegion* entry) {
    if (entry != nullptr && entry->windows != 0) return refuse(CommandSyndrome::in_use, CommandStatus::resource_busy);
    const auto drop = [this, index, epoch = epoch_] {
      if (epoch != epoch_) return;
      complete_flushed(drop_entry(index));
    };
    entry != nullptr && entry->is_window() ? windows_.close(index, drop) : drop();
  });
}

void CommandUnit::query_mpt() {
  contexts_.regions.lookup(object(), [this](MemoryRegion* region) {
    if (region == nullptr) return refuse(CommandSyndrome::no_object, CommandStatus::bad_resource);
    current_->output = *region;
    complete(CommandStatus::ok);
  });
}

// The region counts as a new one: accesses under way through its old pages are refused.
void CommandUnit::modify_mpt() {
  const auto index = object();
  const auto entry = entry_of(input<MemoryRegion>(), params_);
  contexts_.regions.lookup(index, [this, index, entry](const MemoryRegion* old) {
    if (old == nullptr) return refuse(CommandSyndrome::no_object, CommandStatus::bad_resource);
    if (old->kind != RegionKind::region || entry.kind != RegionKind::region) return refuse(CommandSyndrome::bad_kind);
    if (entry.on_demand() && !params_.on_demand) return refuse(CommandSyndrome::bad_kind, CommandStatus::not_supported);
    if (old->windows != 0) return refuse(CommandSyndrome::in_use, CommandStatus::resource_busy);
    if (const auto bad = check_entry(index, entry); bad != CommandSyndrome::none) return refuse(bad);
    const auto pages = drop_entry(index);
    complete_flushed(pages + put_entry(index, entry));
  });
}

void CommandUnit::create_qp() {
  const auto qpn = object();
  const auto& context = input<QpContext>();
  if (qpn >= params_.max_qp) return refuse(CommandSyndrome::number_out_of_range, CommandStatus::exceeds_limit);
  if (contexts_.qps.find(qpn) != nullptr) return refuse(CommandSyndrome::exists, CommandStatus::resource_busy);
  if (!contexts_.icm().mapped(IcmTable::qpc, qpn)) return refuse(CommandSyndrome::no_icm);
  if (context.uar_page >= personality_.layout.pci.uar_pages) return refuse(CommandSyndrome::bad_uar_page);
  QpEntry entry{context.uar_page, context.send_cqn, context.receive_cqn, {}, context.transport};
  const bool receives = context.transport != roce::Transport::xrc_send;
  const bool has_cqs = context.transport != roce::Transport::xrc_recv;
  if (!has_cqs) entry.send_cqn = QpEntry::kNoCq;
  if (!has_cqs || !receives) entry.receive_cqn = QpEntry::kNoCq;
  for (const auto cqn : {entry.send_cqn, entry.receive_cqn})
    if (cqn != QpEntry::kNoCq && !contexts_.cqs.exists(cqn)) return refuse(CommandSyndrome::no_cq);
  if (context.send_ring % kRingAlignment != 0 || context.receive_ring % kRingAlignment != 0 ||
      context.doorbell_record % personality_.layout.qp_record != 0)
    return refuse(CommandSyndrome::bad_alignment);
  if (context.has_srq) entry.srqn = context.srqn;
  const bool has_srq = entry.srqn && contexts_.srqs.exists(*entry.srqn) && !contexts_.xrc_cqns.contains(*entry.srqn);
  if (entry.srqn && !has_srq) return refuse(CommandSyndrome::no_srq);
  if (scaling_.find({qpn}) != nullptr) return refuse(CommandSyndrome::exists, CommandStatus::resource_busy);
  contexts_.qps.put(qpn, std::make_unique<QpEntry>(entry));
  if (context.block_self_multicast) groups_.block_self({qpn});
  qp_command({0, QpCommand::Kind::create, {qpn}, context, 0, std::nullopt});
}

void CommandUnit::destroy_qp() {
  const Qpn qpn{object()};
  if (groups_.is_attached(qpn) || flows_.leads_to(qpn) || scaling_.uses(qpn))
    return refuse(CommandSyndrome::in_use, CommandStatus::resource_busy);
  qp_command({0, QpCommand::Kind::destroy, {object()}, {}, 0, std::nullopt});
}
void CommandUnit::query_qp() { qp_command({0, QpCommand::Kind::query, {object()}, {}, 0, std::nullopt}); }

void CommandUnit::modify_qp() {
  const auto& in = input<QpModification>();
  std::optional<roce::QpState> current;
  if ((in.attributes & roce::attr::kCurrentState) != 0) current = in.current_state;
  qp_command({0, QpCommand::Kind::modify, {object()}, in.context, in.attributes, current});
}

void CommandUnit::attach_multicast() {
  const auto& group = input<MulticastGroup>().gid;
  const auto* qp = contexts_.qps.find(object());
  if (params_.max_multicast_groups == 0) return complete(CommandStatus::not_supported);
  if (qp == nullptr) return refuse(CommandSyndrome::no_object, CommandStatus::bad_resource);
  if (qp->transport != roce::Transport::ud) return refuse(CommandSyndrome::not_datagrams);
  if (!is_group(group)) return refuse(CommandSyndrome::bad_group);
  groups_.attach(group, {object()}) ? complete(CommandStatus::ok)
                                    : refuse(CommandSyndrome::no_room, CommandStatus::exceeds_limit);
}

void CommandUnit::detach_multicast() {
  const auto& group = input<MulticastGroup>().gid;
  groups_.detach(group, {object()}) ? complete(CommandStatus::ok) : refuse(CommandSyndrome::not_attached);
}

}  // namespace rnicsim::nic
