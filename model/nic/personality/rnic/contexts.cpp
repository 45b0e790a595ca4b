// SPDX-License-Identifier: Apache-2.0
// Contexts of the device in docs/device.md, as stored in ICM.
#include <cstring>

#include "model/nic/personality/rnic/rnic.h"

namespace rnicsim::nic {
namespace {

template <class Layout>
Layout load(std::span<const std::byte> bytes) {
  Layout layout;
  std::memcpy(static_cast<void*>(&layout), bytes.data(), sizeof(layout));
  return layout;
}

template <class Layout>
void store(const Layout& layout, std::span<std::byte> bytes) {
  std::memcpy(bytes.data(), &layout, sizeof(layout));
}

abi::AddressVector vector_of(const Path& path) {
  abi::AddressVector vector;
  std::memcpy(vector.remote_gid, path.remote_gid.data(), sizeof vector.remote_gid);
  std::memcpy(vector.remote_mac, path.remote_mac.data(), sizeof vector.remote_mac);
  vector.sgid_index = path.sgid_index;
  vector.flow_label = path.flow_label;
  vector.traffic_class = path.traffic_class;
  vector.hop_limit = path.hop_limit;
  vector.service_level = path.service_level;
  vector.static_rate = path.static_rate;
  return vector;
}

}  // namespace

Path path_of(const abi::AddressVector& vector) {
  Path path;
  std::memcpy(path.remote_gid.data(), vector.remote_gid, sizeof vector.remote_gid);
  std::memcpy(path.remote_mac.data(), vector.remote_mac, sizeof vector.remote_mac);
  path.sgid_index = vector.sgid_index;
  path.flow_label = vector.flow_label;
  path.traffic_class = vector.traffic_class;
  path.hop_limit = vector.hop_limit;
  path.service_level = vector.service_level;
  path.static_rate = vector.static_rate;
  return path;
}

QpContext context_of(const abi::Qpc& layout) {
  QpContext context;
  context.state = static_cast<roce::QpState>(layout.state);
  context.transport = static_cast<roce::Transport>(layout.transport);
  context.has_send = (layout.flags & abi::Qpc::kHasSend) != 0;
  context.has_receive = (layout.flags & abi::Qpc::kHasReceive) != 0;
  context.has_srq = (layout.flags & abi::Qpc::kHasSrq) != 0;
  context.block_self_multicast = (layout.flags & abi::Qpc::kBlockSelfMulticast) != 0;
  context.strip_vlan = (layout.flags & abi::Qpc::kStripVlan) != 0;
  context.scatter_fcs = (layout.flags & abi::Qpc::kScatterFcs) != 0;
  context.pad_writes = (layout.flags & abi::Qpc::kPadWrites) != 0;
  context.path = path_of(layout.path);
  context.log_send_blocks = layout.log_send_blocks;
  context.log_receive_wqes = layout.log_receive_wqes;
  context.log_receive_stride = layout.log_receive_stride;
  context.inline_receive = layout.inline_receive;
  context.uar_page = layout.uar_page;
  context.pd = layout.pd;
  context.pasid = layout.pasid;
  context.send_cqn = layout.send_cqn;
  context.receive_cqn = layout.receive_cqn;
  context.srqn = layout.srqn;
  context.source_qpn = layout.source_qpn;
  context.xrcd = layout.xrcd;
  context.send_ring = layout.send_ring;
  context.receive_ring = layout.receive_ring;
  context.doorbell_record = layout.doorbell_record;
  context.port = layout.port;
  context.path_mtu = layout.path_mtu;
  context.pkey_index = layout.pkey_index;
  context.qkey = layout.qkey;
  context.access_flags = layout.access_flags;
  context.remote_qpn = layout.remote_qpn;
  context.send_psn = layout.send_psn;
  context.receive_psn = layout.receive_psn;
  context.rate_limit = layout.rate_limit;
  context.max_burst = layout.max_burst;
  context.max_rd_atomic = layout.max_rd_atomic;
  context.max_dest_rd_atomic = layout.max_dest_rd_atomic;
  context.min_rnr_timer = layout.min_rnr_timer;
  context.timeout = layout.timeout;
  context.retry_count = layout.retry_count;
  context.rnr_retry = layout.rnr_retry;
  context.path_migration_state = layout.path_migration_state;
  context.sqd_notify = layout.sqd_notify;
  context.send_consumer = layout.send_consumer;
  context.send_next = layout.send_next;
  context.receive_consumer = layout.receive_consumer;
  context.next_send_psn = layout.next_send_psn;
  context.oldest_unacked_psn = layout.oldest_unacked_psn;
  context.expected_psn = layout.expected_psn;
  context.msn = layout.msn;
  context.retries_left = layout.retries_left;
  context.rnr_retries_left = layout.rnr_retries_left;
  context.draining = layout.draining;
  return context;
}

abi::Qpc layout_of(const QpContext& context) {
  abi::Qpc layout;
  layout.state = static_cast<abi::QpState>(context.state);
  layout.transport = static_cast<abi::Transport>(context.transport);
  layout.flags = static_cast<std::uint8_t>(
      (context.has_send ? abi::Qpc::kHasSend : 0) | (context.has_receive ? abi::Qpc::kHasReceive : 0) |
      (context.has_srq ? abi::Qpc::kHasSrq : 0) | (context.block_self_multicast ? abi::Qpc::kBlockSelfMulticast : 0) |
      (context.strip_vlan ? abi::Qpc::kStripVlan : 0) | (context.scatter_fcs ? abi::Qpc::kScatterFcs : 0) |
      (context.pad_writes ? abi::Qpc::kPadWrites : 0));
  layout.path = vector_of(context.path);
  layout.log_send_blocks = context.log_send_blocks;
  layout.log_receive_wqes = context.log_receive_wqes;
  layout.log_receive_stride = context.log_receive_stride;
  layout.inline_receive = context.inline_receive;
  layout.uar_page = context.uar_page;
  layout.pd = context.pd;
  layout.pasid = context.pasid;
  layout.send_cqn = context.send_cqn;
  layout.receive_cqn = context.receive_cqn;
  layout.srqn = context.srqn;
  layout.source_qpn = context.source_qpn;
  layout.xrcd = context.xrcd;
  layout.send_ring = context.send_ring;
  layout.receive_ring = context.receive_ring;
  layout.doorbell_record = context.doorbell_record;
  layout.port = context.port;
  layout.path_mtu = context.path_mtu;
  layout.pkey_index = context.pkey_index;
  layout.qkey = context.qkey;
  layout.access_flags = context.access_flags;
  layout.remote_qpn = context.remote_qpn;
  layout.send_psn = context.send_psn;
  layout.receive_psn = context.receive_psn;
  layout.rate_limit = context.rate_limit;
  layout.max_burst = context.max_burst;
  layout.max_rd_atomic = context.max_rd_atomic;
  layout.max_dest_rd_atomic = context.max_dest_rd_atomic;
  layout.min_rnr_timer = context.min_rnr_timer;
  layout.timeout = context.timeout;
  layout.retry_count = context.retry_count;
  layout.rnr_retry = context.rnr_retry;
  layout.path_migration_state = context.path_migration_state;
  layout.sqd_notify = context.sqd_notify;
  layout.send_consumer = context.send_consumer;
  layout.send_next = context.send_next;
  layout.receive_consumer = context.receive_consumer;
  layout.next_send_psn = context.next_send_psn;
  layout.oldest_unacked_psn = context.oldest_unacked_psn;
  layout.expected_psn = context.expected_psn;
  layout.msn = context.msn;
  layout.retries_left = context.retries_left;
  layout.rnr_retries_left = context.rnr_retries_left;
  layout.draining = context.draining;
  return layout;
}

CompletionQueue context_of(const abi::Cqc& context) {
  CompletionQueue queue;
  queue.log_entries = context.log_entries;
  queue.ignore_overrun = (context.flags & abi::Cqc::kIgnoreOverrun) != 0;
  queue.uar_page = context.uar_page;
  queue.pasid = context.pasid;
  queue.ring = context.ring;
  queue.doorbell_record = context.doorbell_record;
  queue.eqn = context.eqn;
  queue.producer = context.producer & kCounterMask;
  queue.consumer = context.consumer & kCounterMask;
  queue.solicited = context.solicited & kCounterMask;
  queue.dead = (context.flags & abi::Cqc::kInError) != 0;
  queue.armed = static_cast<Arm>(context.armed & 3);
  queue.moderation_count = context.moderation_count;
  queue.moderation_period = context.moderation_period;
  queue.withheld = context.withheld;
  return queue;
}

EventQueueContext context_of(const abi::Eqc& context) {
  EventQueueContext queue;
  queue.log_entries = context.log_entries;
  queue.vector = context.msix_vector;
  queue.pasid = context.pasid;
  queue.ring = context.ring;
  queue.producer = context.producer & kCounterMask;
  queue.consumer = context.consumer & kCounterMask;
  return queue;
}

SharedReceiveQueue context_of(const abi::Srqc& context) {
  SharedReceiveQueue queue;
  queue.log_entries = context.log_entries;
  queue.log_stride = context.log_stride;
  queue.pasid = context.pasid;
  queue.pd = context.pd;
  queue.limit = context.limit;
  queue.ring = context.ring;
  queue.doorbell_record = context.doorbell_record;
  queue.head = static_cast<std::uint16_t>(std::uint32_t(context.head));
  queue.taken = static_cast<std::uint16_t>(std::uint32_t(context.taken));
  queue.dead = (context.flags & abi::Srqc::kInError) != 0;
  queue.xrc = (context.flags & abi::Srqc::kXrc) != 0;
  queue.xrcd = context.xrcd;
  queue.cqn = context.cqn;
  return queue;
}

MemoryRegion context_of(const abi::Mpt& context) {
  return {.kind = static_cast<RegionKind>(context.kind),
          .valid = context.valid == 1u,
          .key = context.key,
          .pd = context.pd,
          .pasid = context.pasid,
          .access = context.access_flags,
          .start = context.start,
          .length = context.length,
          .bus_address = context.bus_address,
          .log_page = context.log_page,
          .first_page = context.first_page,
          .region = context.region,
          .qpn = context.qpn,
          .windows = context.windows};
}

abi::Cqc layout_of(const CompletionQueue& queue) {
  abi::Cqc context;
  context.log_entries = queue.log_entries;
  context.flags = static_cast<std::uint8_t>((queue.ignore_overrun ? abi::Cqc::kIgnoreOverrun : 0) |
                                            (queue.dead ? abi::Cqc::kInError : 0));
  context.uar_page = queue.uar_page;
  context.pasid = queue.pasid;
  context.ring = queue.ring;
  context.doorbell_record = queue.doorbell_record;
  context.eqn = queue.eqn;
  context.producer = queue.producer;
  context.consumer = queue.consumer;
  context.solicited = queue.solicited;
  context.armed = static_cast<std::uint32_t>(queue.armed);
  context.moderation_count = queue.moderation_count;
  context.moderation_period = queue.moderation_period;
  context.withheld = queue.withheld;
  return context;
}

abi::Eqc layout_of(const EventQueueContext& queue) {
  abi::Eqc context;
  context.log_entries = queue.log_entries;
  context.msix_vector = queue.vector;
  context.pasid = queue.pasid;
  context.ring = queue.ring;
  context.producer = queue.producer;
  context.consumer = queue.consumer;
  return context;
}

abi::Srqc layout_of(const SharedReceiveQueue& queue) {
  abi::Srqc context;
  context.log_entries = queue.log_entries;
  context.log_stride = queue.log_stride;
  context.flags = static_cast<std::uint8_t>((queue.xrc ? abi::Srqc::kXrc : 0) | (queue.dead ? abi::Srqc::kInError : 0));
  context.xrcd = queue.xrcd;
  context.cqn = queue.cqn;
  context.pasid = queue.pasid;
  context.pd = queue.pd;
  context.limit = queue.limit;
  context.ring = queue.ring;
  context.doorbell_record = queue.doorbell_record;
  context.head = queue.head;
  context.taken = queue.taken;
  return context;
}

abi::Mpt layout_of(const MemoryRegion& region) {
  abi::Mpt context;
  context.key = region.key;
  context.pd = region.pd;
  context.pasid = region.pasid;
  context.access_flags = region.access;
  context.start = region.start;
  context.length = region.length;
  context.bus_address = region.bus_address;
  context.log_page = region.log_page;
  context.first_page = region.first_page;
  context.valid = region.valid ? 1u : 0u;
  context.kind = static_cast<abi::MptKind>(region.kind);
  context.region = region.region;
  context.qpn = region.qpn;
  context.windows = region.windows;
  return context;
}

void RnicPersonality::decode(std::span<const std::byte> bytes, QpContext& context) const {
  context = context_of(load<abi::Qpc>(bytes));
}
void RnicPersonality::decode(std::span<const std::byte> bytes, CompletionQueue& queue) const {
  queue = context_of(load<abi::Cqc>(bytes));
}
void RnicPersonality::decode(std::span<const std::byte> bytes, EventQueueContext& queue) const {
  queue = context_of(load<abi::Eqc>(bytes));
}
void RnicPersonality::decode(std::span<const std::byte> bytes, SharedReceiveQueue& queue) const {
  queue = context_of(load<abi::Srqc>(bytes));
}
void RnicPersonality::decode(std::span<const std::byte> bytes, MemoryRegion& region) const {
  region = context_of(load<abi::Mpt>(bytes));
}
void RnicPersonality::decode(std::span<const std::byte> bytes, PageEntry& page) const {
  page.page = load<abi::Mtt>(bytes).page;
}
void RnicPersonality::encode(const QpContext& context, std::span<std::byte> bytes) const {
  store(layout_of(context), bytes);
}
void RnicPersonality::encode(const CompletionQueue& queue, std::span<std::byte> bytes) const {
  store(layout_of(queue), bytes);
}
void RnicPersonality::encode(const EventQueueContext& queue, std::span<std::byte> bytes) const {
  store(layout_of(queue), bytes);
}
void RnicPersonality::encode(const SharedReceiveQueue& queue, std::span<std::byte> bytes) const {
  store(layout_of(queue), bytes);
}
void RnicPersonality::encode(const MemoryRegion& region, std::span<std::byte> bytes) const {
  store(layout_of(region), bytes);
}

}  // namespace rnicsim::nic
