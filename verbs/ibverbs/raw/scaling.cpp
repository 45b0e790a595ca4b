// SPDX-License-Identifier: Apache-2.0
// Receive-side scaling: tables of work queues, and the QPs through which flows use a table.
#include <infiniband/verbs.h>

#include <bit>
#include <cerrno>
#include <memory>
#include <span>

#include "model/abi/device.h"
#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

constexpr std::size_t kKeyBytes = sizeof(abi::CreateRss::key);
constexpr std::uint64_t kIpv4Fields = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4;
constexpr std::uint64_t kIpv6Fields = IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6;
constexpr std::uint64_t kTcpFields = IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP;
constexpr std::uint64_t kUdpFields = IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;

int check_queue(const Context& context, ibv_wq* wq) {
  if (wq == nullptr || wq->context != &context.context || wq->wq_type != IBV_WQT_RQ) return EINVAL;
  return resolves(Wq::of(wq)) ? 0 : ENOENT;
}

int check_table(const Context& context, const ibv_rwq_ind_table_init_attr& attributes) {
  if (!context.has_feature(abi::feature::kRaw)) return EOPNOTSUPP;
  if (attributes.comp_mask != 0 || attributes.ind_tbl == nullptr) return EINVAL;
  const std::uint32_t log = attributes.log_ind_tbl_size;
  if (log > abi::CreateRss::kMostLogQueues || 1u << log > context.capabilities.max_rss_queues) return EINVAL;
  for (ibv_wq* wq : std::span(attributes.ind_tbl, std::size_t{1} << log))
    if (const int error = check_queue(context, wq)) return error;
  return 0;
}

int create(Context& context, const ibv_rwq_ind_table_init_attr& attributes, ibv_rwq_ind_table*& created) {
  if (const int error = check_table(context, attributes)) return error;
  if (context.tables.size() >= context.capabilities.max_rss) return ENOMEM;
  auto table = std::make_unique<IndirectionTable>();
  table->context = &context.context;
  table->ind_tbl_handle = table->ind_tbl_num = int(context.next_table++);
  for (ibv_wq* wq : std::span(attributes.ind_tbl, std::size_t{1} << attributes.log_ind_tbl_size))
    table->queues.push_back(&Wq::of(wq));
  created = table.get();
  context.tables.add(table->number(), std::move(table));
  return 0;
}

int destroy(IndirectionTable& table) {
  Context& context = Context::of(table.context);
  if (!context.tables.holds(table.number(), &table)) return ENOENT;
  if (context.qps.any_of([&](const Qp& qp) { return qp.table == &table; })) return EBUSY;
  context.tables.take(table.number());
  return 0;
}

// At most one header of each layer: a frame has no more.
int check_fields(std::uint64_t fields) {
  constexpr std::uint64_t kKnown =
      kIpv4Fields | kIpv6Fields | kTcpFields | kUdpFields | IBV_RX_HASH_IPSEC_SPI | IBV_RX_HASH_INNER;
  if (fields & ~kKnown) return EINVAL;
  if ((fields & kIpv4Fields) && (fields & kIpv6Fields)) return EINVAL;
  int transports = 0;
  for (const std::uint64_t of_one : {kTcpFields, kUdpFields, std::uint64_t{IBV_RX_HASH_IPSEC_SPI}})
    if (fields & of_one) ++transports;
  return transports > 1 ? EINVAL : 0;
}

int check_hash(const ibv_rx_hash_conf& hash) {
  if (hash.rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ) return EINVAL;
  if (hash.rx_hash_key == nullptr || hash.rx_hash_key_len != kKeyBytes) return EINVAL;
  return check_fields(hash.rx_hash_fields_mask);
}

bool may_move(ibv_qp_state from, ibv_qp_state to) {
  switch (to) {
    case IBV_QPS_RESET:
    case IBV_QPS_ERR: return true;
    case IBV_QPS_INIT: return from == IBV_QPS_RESET || from == IBV_QPS_INIT;
    case IBV_QPS_RTR: return from == IBV_QPS_INIT;
    case IBV_QPS_RTS: return from == IBV_QPS_RTR || from == IBV_QPS_RTS || from == IBV_QPS_SQD;
    case IBV_QPS_SQD: return from == IBV_QPS_RTS || from == IBV_QPS_SQD;
    default: return false;
  }
}

}  // namespace

int check_scaling(const Context& context, const ibv_qp_init_attr_ex& attributes) {
  constexpr std::uint32_t kBoth = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
  if ((attributes.comp_mask & kBoth) != kBoth) return EINVAL;
  if (attributes.srq != nullptr || attributes.cap.max_recv_wr != 0 || attributes.cap.max_recv_sge != 0) return EINVAL;
  ibv_rwq_ind_table* table = attributes.rwq_ind_tbl;
  if (table == nullptr || table->context != &context.context) return EINVAL;
  const auto& own = IndirectionTable::of(table);
  if (!context.tables.holds(own.number(), &own)) return ENOENT;
  if (const int error = check_hash(attributes.rx_hash_conf)) return error;
  return attributes.cap.max_send_wr != 0 ? EOPNOTSUPP : 0;
}

int create_scaling(Context& context, const ibv_rx_hash_conf& hash, Qp& qp) {
  std::vector<std::uint32_t> qpns;
  for (const Wq* wq : qp.table->queues) qpns.push_back(wq->wq_num);
  const std::span<const std::uint8_t, kKeyBytes> key(hash.rx_hash_key, kKeyBytes);
  abi::CommandResult result;
  const auto command = provider::create_rss(std::uint32_t(hash.rx_hash_fields_mask), key, qpns);
  if (const int error = context.execute(command, result)) return error;
  qp.qp_base.handle = qp.qp_base.qp_num = result.object;
  return 0;
}

bool has_scaling_qps(const Context& context, const ibv_pd& pd) {
  return context.qps.any_of([&](const Qp& qp) { return qp.table != nullptr && qp.qp_base.pd == &pd; });
}

// RSS QPs have no state on the device; only their work queues do.
int modify_scaling(Qp& qp, const ibv_qp_attr& attributes, int mask) {
  const ibv_qp_state from = qp.qp_base.state;
  const ibv_qp_state to = mask & IBV_QP_STATE ? attributes.qp_state : from;
  if (!may_move(from, to)) return EINVAL;
  const bool needs_port = from == IBV_QPS_RESET && to == IBV_QPS_INIT;
  if ((mask & ~IBV_QP_STATE) != (needs_port ? IBV_QP_PORT : 0)) return EINVAL;
  if (needs_port) qp.port_number = attributes.port_num;
  qp.qp_base.state = to;
  return 0;
}

void query_scaling(const Qp& qp, ibv_qp_attr& attributes) {
  attributes.qp_state = attributes.cur_qp_state = qp.qp_base.state;
  attributes.port_num = qp.port_number;
}

ibv_rwq_ind_table* create_table(ibv_context* context, ibv_rwq_ind_table_init_attr* attributes) {
  return guarded_object<ibv_rwq_ind_table>(
      [&](ibv_rwq_ind_table*& made) { return create(Context::of(context), *attributes, made); });
}

int destroy_table(ibv_rwq_ind_table* table) {
  return guarded([&] { return destroy(IndirectionTable::of(table)); });
}

}  // namespace rnicsim::verbs
