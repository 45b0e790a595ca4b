// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/agents/frame_queue.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "sim/bench/made.h"

namespace rnicsim::sim::bench {
namespace {

constexpr std::uint8_t kOnlyPort = 1;
// Entries of the table, as in drivers. With many entries, a number of queues that is no power of 2 shares nearly
// equally.
constexpr std::size_t kTableEntries = 128;

std::uint64_t hash_field(RssField field) {
  switch (field) {
    case RssField::src_ipv4: return IBV_RX_HASH_SRC_IPV4;
    case RssField::dst_ipv4: return IBV_RX_HASH_DST_IPV4;
    case RssField::src_port_udp: return IBV_RX_HASH_SRC_PORT_UDP;
    default: return IBV_RX_HASH_DST_PORT_UDP;
  }
}

}  // namespace

void FrameQueue::make(ibv_pd* pd, ibv_cq* cq, const Flow& flow) {
  ibv_wq_init_attr wanted{};
  wanted.wq_type = IBV_WQT_RQ;
  wanted.max_wr = flow.receives();
  wanted.max_sge = 1;
  wanted.pd = pd;
  wanted.cq = cq;
  wq_ = made(ibv_create_wq(pd->context, &wanted), "ibv_create_wq");
  ibv_wq_attr ready{};
  ready.attr_mask = IBV_WQ_ATTR_STATE;
  ready.wq_state = IBV_WQS_RDY;
  must(ibv_modify_wq(wq_, &ready), "ibv_modify_wq to RDY");
}

void FrameQueue::lead_to(std::span<FrameQueue* const> queues, const RawOptions& options, const Mac& mac,
                         std::uint16_t port) {
  make_table(queues);
  make_qp(options);
  make_flow(mac, port);
}

void FrameQueue::make_table(std::span<FrameQueue* const> queues) {
  ibv_device_attr_ex device{};
  must(ibv_query_device_ex(wq_->context, nullptr, &device), "ibv_query_device_ex");
  const std::size_t most = std::bit_floor(device.rss_caps.max_rwq_indirection_table_size);
  const std::size_t entries = std::max(std::min(kTableEntries, most), std::bit_ceil(queues.size()));
  std::vector<ibv_wq*> table;
  for (std::size_t i = 0; i < entries; ++i) table.push_back(queues[i % queues.size()]->wq());
  ibv_rwq_ind_table_init_attr wanted{};
  wanted.log_ind_tbl_size = static_cast<std::uint32_t>(std::bit_width(entries) - 1);
  wanted.ind_tbl = table.data();
  table_ = made(ibv_create_rwq_ind_table(wq_->context, &wanted), "ibv_create_rwq_ind_table");
}

void FrameQueue::make_qp(const RawOptions& options) {
  auto key = options.rss_key;
  std::uint64_t fields = 0;
  for (const auto field : options.rss_fields) fields |= hash_field(field);
  ibv_qp_init_attr_ex wanted{};
  wanted.qp_type = IBV_QPT_RAW_PACKET;
  wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
  wanted.pd = wq_->pd;
  wanted.rwq_ind_tbl = table_;
  wanted.rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
                         .rx_hash_key_len = static_cast<std::uint8_t>(key.size()),
                         .rx_hash_key = key.data(),
                         .rx_hash_fields_mask = fields};
  qp_ = made(ibv_create_qp_ex(wq_->context, &wanted), "ibv_create_qp_ex of a table");
}

void FrameQueue::make_flow(const Mac& mac, std::uint16_t port) {
  struct {
    ibv_flow_attr attributes{};
    ibv_flow_spec_eth ethernet{};
    ibv_flow_spec_tcp_udp udp{};
  } rule;
  rule.attributes.size = sizeof rule;
  rule.attributes.num_of_specs = 2;
  rule.attributes.port = kOnlyPort;
  rule.ethernet.type = IBV_FLOW_SPEC_ETH;
  rule.ethernet.size = sizeof rule.ethernet;
  std::ranges::copy(mac, rule.ethernet.val.dst_mac);
  std::ranges::fill(rule.ethernet.mask.dst_mac, std::uint8_t{0xff});
  rule.udp.type = IBV_FLOW_SPEC_UDP;
  rule.udp.size = sizeof rule.udp;
  rule.udp.val.dst_port = __builtin_bswap16(port);
  rule.udp.mask.dst_port = 0xffff;
  static_assert(sizeof rule == sizeof rule.attributes + sizeof rule.ethernet + sizeof rule.udp);
  rule_ = made(ibv_create_flow(qp_, &rule.attributes), "ibv_create_flow");
}

void FrameQueue::destroy() {
  if (rule_) ibv_destroy_flow(rule_);
  if (qp_) ibv_destroy_qp(qp_);
  if (table_) ibv_destroy_rwq_ind_table(table_);
  if (wq_) ibv_destroy_wq(wq_);
  *this = {};
}

}  // namespace rnicsim::sim::bench
