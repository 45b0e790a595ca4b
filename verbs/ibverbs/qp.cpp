// SPDX-License-Identifier: Apache-2.0
// Queue pairs: modification, query, destruction. Creation is in qp_create.cpp.
#include <infiniband/verbs.h>

#include <cerrno>
#include <memory>

#include "model/abi/device.h"
#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"
#include "verbs/ibverbs/qp_attributes.h"

namespace rnicsim::verbs {

namespace {

template <class Action>
void for_each_cq(Qp& qp, Action&& action) {
  ibv_cq* const sends = qp.qp_base.send_cq;
  ibv_cq* const receives = qp.qp_base.recv_cq;
  if (qp.table != nullptr || qp.xrcd != nullptr) return;
  action(Cq::of(sends));
  if (receives != nullptr && receives != sends) action(Cq::of(receives));
}

// After a reset: the device has forgotten all WQEs, and so do the rings and the CQs.
void forget_work(Qp& qp) {
  for_each_cq(qp, [&](Cq& cq) { forget_completions(cq, qp); });
  DevicePort& port = qp.owner().port;
  if (qp.send) {
    QueueGuard guard(qp.send_lock, port);
    qp.send->reset();
  }
  if (qp.receive) {
    QueueGuard guard(qp.receive_lock, port);
    qp.receive->reset();
  }
  qp.failed = false;
  qp.posted_unseen = false;
}

int modify_qp(Qp& qp, const ibv_qp_attr& attributes, int mask) {
  if (!resolves(qp)) return ENOENT;
  if (const int error = check_attributes(qp.owner(), qp, attributes, mask)) return error;
  return qp.table != nullptr ? modify_scaling(qp, attributes, mask) : change_qp(qp, attributes, mask);
}

void fill_init_attributes(const Qp& qp, ibv_qp_init_attr& to) {
  to.qp_context = qp.qp_base.qp_context;
  to.send_cq = qp.qp_base.send_cq;
  to.recv_cq = qp.qp_base.recv_cq;
  to.srq = qp.qp_base.srq;
  to.cap = qp.capabilities;
  to.qp_type = qp.qp_base.qp_type;
  to.sq_sig_all = qp.signal_all;
}

int query_device_of(const Qp& qp, ibv_qp_attr& attributes) {
  abi::QueryQp answer;
  const auto query = provider::header(abi::CommandOpcode::query_qp, qp.number());
  if (const int error = qp.owner().execute(query, answer)) return error;
  decode_attributes(answer.context, attributes);
  return 0;
}

int query_qp(Qp& qp, ibv_qp_attr& attributes, ibv_qp_init_attr& init_attributes) {
  if (!resolves(qp)) return ENOENT;
  ibv_qp_attr found{};
  if (qp.table != nullptr) {
    query_scaling(qp, found);
  } else if (const int error = query_device_of(qp, found)) {
    return error;
  }
  attributes = found;
  attributes.cap = qp.capabilities;
  fill_init_attributes(qp, init_attributes);
  qp.qp_base.state = attributes.qp_state;
  if (attributes.qp_state == IBV_QPS_ERR) flush_unseen_receives(qp);
  return 0;
}

int destroy_qp(Qp& qp) {
  Context& context = qp.owner();
  if (!resolves(qp)) return ENOENT;
  if (const int error = release_qp(qp)) return error;
  const std::unique_ptr<Qp> last = context.qps.take(qp.qp_base.handle);
  // Only a receiving QP of an XRC domain may have several handles.
  const auto is_same = [&](const Qp& other) { return other.number() == last->number(); };
  const bool gone = last->xrcd == nullptr || !context.qps.any_of(is_same);
  context.events.purge([&](const abi::EventRecord& record) { return gone && names_qp(record, last->number()); });
  wait_acknowledged(context.port, last->qp_base.mutex, last->qp_base.events_completed, last->events_delivered,
                    "ibv_destroy_qp");
  pthread_cond_destroy(&last->qp_base.cond);
  pthread_mutex_destroy(&last->qp_base.mutex);
  return 0;
}

int modify_rate_limit(Qp& qp, const ibv_qp_rate_limit_attr& limit) {
  Context& context = qp.owner();
  if (!resolves(qp)) return ENOENT;
  if (!context.has_feature(abi::feature::kPacing) || qp.qp_base.qp_type != IBV_QPT_RAW_PACKET) return EOPNOTSUPP;
  if (limit.comp_mask != 0 || qp.table != nullptr || qp.qp_base.state != IBV_QPS_RTS) return EINVAL;
  abi::Qpc asked;
  asked.rate_limit = limit.rate_limit;
  asked.max_burst = limit.max_burst_sz;
  asked.typical_packet = limit.typical_pkt_sz;
  return context.execute(provider::modify_qp(qp.qp_base.handle, abi::qp_attr::kRateLimit, asked));
}

}  // namespace

int modify_qp_rate_limit(ibv_qp* qp, ibv_qp_rate_limit_attr* limit) {
  return guarded([&] { return modify_rate_limit(Qp::of(qp), *limit); });
}

bool names_qp(const abi::EventRecord& record, std::uint32_t number) {
  using enum abi::EventType;
  switch (abi::EventType(record.type)) {
    case communication_established:
    case send_queue_drained:
    case last_wqe_reached:
    case qp_fatal:
    case qp_request_error:
    case qp_access_error: return record.number == number;
    default: return false;
  }
}

int change_qp(Qp& qp, const ibv_qp_attr& attributes, int mask) {
  Context& context = qp.owner();
  abi::ModifyQp command =
      provider::modify_qp(qp.number(), std::uint32_t(mask), encode_attributes(context, attributes, mask));
  if (mask & IBV_QP_CUR_STATE) command.current_state = std::uint8_t(attributes.cur_qp_state);
  if (const int error = context.execute(command)) return error;
  if (mask & IBV_QP_PORT) qp.port_number = attributes.port_num;
  if (mask & IBV_QP_STATE) {
    if (attributes.qp_state == IBV_QPS_RESET) forget_work(qp);
    qp.qp_base.state = attributes.qp_state;
    if (attributes.qp_state == IBV_QPS_ERR) flush_unseen_receives(qp);
  }
  return 0;
}

bool resolves(const Qp& qp) { return qp.owner().qps.holds(qp.qp_base.handle, &qp); }

int release_qp(Qp& qp) {
  const auto opcode = qp.table != nullptr ? abi::CommandOpcode::destroy_rss : abi::CommandOpcode::destroy_qp;
  const auto destroy = provider::header(opcode, qp.number());
  if (const int error = qp.owner().execute(destroy)) return error;
  for_each_cq(qp, [&](Cq& cq) { detach_user(cq, qp); });
  return 0;
}

}  // namespace rnicsim::verbs

using namespace rnicsim::verbs;

extern "C" {

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  return guarded([&] { return modify_qp(Qp::of(qp), *attributes, mask); });
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int, ibv_qp_init_attr* init_attributes) {
  return guarded([&] { return query_qp(Qp::of(qp), *attributes, *init_attributes); });
}

int ibv_destroy_qp(ibv_qp* qp) {
  return guarded([&] { return destroy_qp(Qp::of(qp)); });
}

// No promise: DMA bursts of a packet may reach memory in another order.
int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, std::uint32_t) { return 0; }

}  // extern "C"
