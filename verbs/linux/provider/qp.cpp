// SPDX-License-Identifier: Apache-2.0
// Queue pairs.
#include <memory>

#include "model/abi/device.h"
#include "verbs/linux/provider/objects.h"

namespace rnicsim::linux_provider {

namespace {

// The table of operations and transports in ibv_post_send(3).
constexpr std::uint64_t kUdOperations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr std::uint64_t kUcOperations = kUdOperations | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
constexpr std::uint64_t kRcOperations =
    kUcOperations | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
constexpr std::uint32_t kKnownQpMask =
    IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

std::uint64_t operations_of(const Context& context, ibv_qp_type type) {
  const bool invalidates = context.has_feature(abi::feature::kInvalidate);
  const std::uint64_t local = (invalidates ? IBV_QP_EX_WITH_LOCAL_INV : 0) |
                              (context.has_feature(abi::feature::kWindows) ? IBV_QP_EX_WITH_BIND_MW : 0);
  if (type == IBV_QPT_UD) return kUdOperations;
  if (type == IBV_QPT_UC) return kUcOperations | local;
  return kRcOperations | local | (invalidates ? IBV_QP_EX_WITH_SEND_WITH_INV : 0) |
         (context.has_feature(abi::feature::kAtomicWrite) ? IBV_QP_EX_WITH_ATOMIC_WRITE : 0);
}

int check(const Context& context, const ibv_qp_init_attr_ex& attributes) {
  if (!(attributes.comp_mask & IBV_QP_INIT_ATTR_PD)) return EINVAL;
  if (attributes.comp_mask & ~kKnownQpMask) return EOPNOTSUPP;
  switch (attributes.qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD: break;
    default: return EOPNOTSUPP;
  }
  const std::uint64_t asked = attributes.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attributes.send_ops_flags : 0;
  return asked & ~operations_of(context, attributes.qp_type) ? EOPNOTSUPP : 0;
}

void make_rings(Qp& qp, const rnic_create_qp_resp& answer) {
  auto* record = qp.send_memory.at<abi::QpDoorbellRecord>(answer.record_offset);
  if (qp.capabilities.max_send_wr > 0) {
    const provider::SendRing::Layout layout{.qpn = answer.qpn,
                                            .log_blocks = answer.log_send_blocks,
                                            .capacity = qp.capabilities.max_send_wr,
                                            .blue_flame = false};  // the page is mapped uncached
    qp.send.emplace(layout, qp.send_memory.buffer(), record, &qp.owner().uar);
    qp.builder = provider::WqeBuilder(answer.send_wqe_blocks);
  }
  if (qp.receive_memory) {
    const provider::ReceiveRing::Layout layout{.log_entries = answer.log_receive_wqes,
                                               .log_stride = answer.log_receive_stride};
    qp.receive.emplace(layout, qp.receive_memory.buffer(), record);
  }
}

int map(Qp& qp, int command_file, const rnic_create_qp_resp& answer) {
  qp.send_memory = Mapping(command_file, answer.send);
  qp.receive_memory = Mapping(command_file, answer.receive);
  return qp.send_memory && (qp.receive_memory || answer.receive.bytes == 0) ? 0 : errno;
}

// Runs before the library has filled in the QP: rings and CQs take PD, CQs and capabilities from `attributes`.
int create(ibv_context* handle, ibv_qp_init_attr_ex& attributes, std::unique_ptr<Qp>& made) {
  Context& context = Context::of(handle);
  if (const int error = check(context, attributes)) return error;
  auto qp = std::make_unique<Qp>();
  ExtendedCommand<ib_uverbs_ex_create_qp> command;
  Answer<ib_uverbs_ex_create_qp_resp, rnic_create_qp_resp> answer;
  if (const int error = ibv_cmd_create_qp_ex2(handle, qp.get(), &attributes, &command, sizeof command, answer.core(),
                                              sizeof answer.bytes))
    return error;
  qp->capabilities = attributes.cap;
  qp->signal_all = attributes.sq_sig_all != 0;
  qp->operations = operations_of(context, attributes.qp_type);
  if (const int error = map(*qp, context.command_file, answer.driver())) {
    ibv_cmd_destroy_qp(&qp->qp);
    return error;
  }
  make_rings(*qp, answer.driver());
  attach_user(Cq::of(attributes.send_cq), *qp);
  if (attributes.recv_cq != attributes.send_cq) attach_user(Cq::of(attributes.recv_cq), *qp);
  if (attributes.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
    fill_work_request_api(*qp);
    qp->comp_mask |= kQpIsExtended;
  }
  made = std::move(qp);
  return 0;
}

template <class Action>
void for_each_cq(Qp& qp, Action&& action) {
  action(Cq::of(qp.qp.send_cq));
  if (qp.qp.recv_cq != qp.qp.send_cq) action(Cq::of(qp.qp.recv_cq));
}

// After a reset: the device has forgotten all WQEs, and so do the rings and the CQs.
void forget_work(Qp& qp) {
  for_each_cq(qp, [&](Cq& cq) { forget_completions(cq, qp); });
  if (qp.send) {
    QueueGuard guard(qp.send_lock);
    qp.send->reset();
  }
  if (qp.receive) {
    QueueGuard guard(qp.receive_lock);
    qp.receive->reset();
  }
  qp.failed = false;
  qp.posted_unseen = false;
}

}  // namespace

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
  std::unique_ptr<Qp> qp;
  return guarded([&] { return create(context, *attributes, qp); }) == 0 ? &qp.release()->qp : nullptr;
}

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  ibv_qp_init_attr_ex extended{};
  extended.qp_context = attributes->qp_context;
  extended.send_cq = attributes->send_cq;
  extended.recv_cq = attributes->recv_cq;
  extended.srq = attributes->srq;
  extended.cap = attributes->cap;
  extended.qp_type = attributes->qp_type;
  extended.sq_sig_all = attributes->sq_sig_all;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD;
  extended.pd = pd;
  ibv_qp* qp = create_qp_ex(pd->context, &extended);
  if (qp != nullptr) attributes->cap = extended.cap;
  return qp;
}

int modify_qp(ibv_qp* handle, ibv_qp_attr* attributes, int mask) {
  Command<ib_uverbs_modify_qp> command;
  const int error = ibv_cmd_modify_qp(handle, attributes, mask, &command, sizeof command);
  if (error != 0 || !(mask & IBV_QP_STATE)) return error;
  Qp& qp = Qp::of(handle);
  if (attributes->qp_state == IBV_QPS_RESET) forget_work(qp);
  if (attributes->qp_state == IBV_QPS_ERR) {
    qp.failed = true;
    flush_unseen_receives(qp);
  }
  return 0;
}

int query_qp(ibv_qp* handle, ibv_qp_attr* attributes, int mask, ibv_qp_init_attr* init_attributes) {
  Command<ib_uverbs_query_qp> command;
  const int error = ibv_cmd_query_qp(handle, attributes, mask, init_attributes, &command, sizeof command);
  if (error == 0 && attributes->qp_state == IBV_QPS_ERR) {
    Qp::of(handle).failed = true;
    flush_unseen_receives(Qp::of(handle));
  }
  return error;
}

int destroy_qp(ibv_qp* handle) {
  if (const int error = ibv_cmd_destroy_qp(handle)) return error;
  Qp& qp = Qp::of(handle);
  for_each_cq(qp, [&](Cq& cq) { detach_user(cq, qp); });
  delete &qp;
  return 0;
}

// Called before the program gets the event.
void take_event(ibv_context*, ibv_async_event* event) {
  switch (event->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR: {
      Qp& qp = Qp::of(event->element.qp);
      qp.failed = true;
      return flush_unseen_receives(qp);
    }
    default: return;
  }
}

}  // namespace rnicsim::linux_provider
