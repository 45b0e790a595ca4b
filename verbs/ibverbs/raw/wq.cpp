// SPDX-License-Identifier: Apache-2.0
// Work queues: receive queues of their own, which tables for receive-side scaling list.
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "model/abi/device.h"
#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

constexpr std::uint32_t kKnownWqFlags = IBV_WQ_FLAGS_CVLAN_STRIPPING | IBV_WQ_FLAGS_SCATTER_FCS |
                                        IBV_WQ_FLAGS_DELAY_DROP | IBV_WQ_FLAGS_PCI_WRITE_END_PADDING;
constexpr std::uint32_t kFlagsThatChange = IBV_WQ_FLAGS_CVLAN_STRIPPING;
constexpr std::uint32_t kFlagsAtCreation =
    IBV_WQ_FLAGS_CVLAN_STRIPPING | IBV_WQ_FLAGS_SCATTER_FCS | IBV_WQ_FLAGS_PCI_WRITE_END_PADDING;
constexpr std::uint32_t kKnownAttributes = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE | IBV_WQ_ATTR_FLAGS;

int check_flags(std::uint32_t flags, std::uint32_t possible) {
  if (flags & ~kKnownWqFlags) return EINVAL;
  return flags & ~possible ? EOPNOTSUPP : 0;
}

std::uint32_t flags_of(const ibv_wq_init_attr& attributes) {
  return attributes.comp_mask & IBV_WQ_INIT_ATTR_FLAGS ? attributes.create_flags : 0;
}

// The WQ's flags as QP create flags.
std::uint32_t queue_pair_flags(std::uint32_t flags) {
  return (flags & IBV_WQ_FLAGS_CVLAN_STRIPPING ? IBV_QP_CREATE_CVLAN_STRIPPING : 0) |
         (flags & IBV_WQ_FLAGS_SCATTER_FCS ? IBV_QP_CREATE_SCATTER_FCS : 0) |
         (flags & IBV_WQ_FLAGS_PCI_WRITE_END_PADDING ? IBV_QP_CREATE_PCI_WRITE_END_PADDING : 0);
}

int check_objects(const Context& context, const ibv_wq_init_attr& attributes) {
  if (attributes.pd == nullptr || attributes.cq == nullptr) return EINVAL;
  if (attributes.pd->context != &context.context || attributes.cq->context != &context.context) return EINVAL;
  if (!context.pds.holds(attributes.pd->handle, &Pd::of(attributes.pd))) return ENOENT;
  return context.cqs.holds(attributes.cq->handle, &Cq::of(attributes.cq)) ? 0 : ENOENT;
}

int check(const Context& context, const ibv_wq_init_attr& attributes) {
  if (!context.has_feature(abi::feature::kRaw)) return EOPNOTSUPP;
  if (attributes.wq_type != IBV_WQT_RQ) return EINVAL;
  if (attributes.comp_mask & ~std::uint32_t{IBV_WQ_INIT_ATTR_FLAGS}) return EINVAL;
  const bool pads = context.has_feature(abi::feature::kWritePadding);
  const std::uint32_t possible = kFlagsAtCreation & ~(pads ? 0 : std::uint32_t{IBV_WQ_FLAGS_PCI_WRITE_END_PADDING});
  if (const int error = check_flags(flags_of(attributes), possible)) return error;
  if (attributes.max_wr == 0) return EINVAL;
  return check_objects(context, attributes);
}

int post(ibv_wq* wq, ibv_recv_wr* list, ibv_recv_wr** bad) {
  return post_receive(&Wq::of(wq).queue->qp_base, list, bad);
}

int create(Context& context, ibv_wq_init_attr& attributes, ibv_wq*& created) {
  if (const int error = check(context, attributes)) return error;
  ibv_qp_init_attr_ex of_queue{};
  of_queue.send_cq = of_queue.recv_cq = attributes.cq;
  of_queue.cap.max_recv_wr = attributes.max_wr;
  of_queue.cap.max_recv_sge = attributes.max_sge;
  of_queue.qp_type = IBV_QPT_RAW_PACKET;
  of_queue.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  of_queue.pd = attributes.pd;
  of_queue.create_flags = queue_pair_flags(flags_of(attributes));
  auto wq = std::make_unique<Wq>();
  if (const int error = make_qp(context, of_queue, wq->queue)) return error;
  wq->context = &context.context;
  wq->wq_context = attributes.wq_context;
  wq->pd = attributes.pd;
  wq->cq = attributes.cq;
  wq->wq_num = wq->handle = wq->queue->qp_base.qp_num;
  wq->strips = flags_of(attributes) & IBV_WQ_FLAGS_CVLAN_STRIPPING;
  wq->state = IBV_WQS_RESET;
  wq->wq_type = attributes.wq_type;
  wq->post_recv = post;
  attributes.max_wr = of_queue.cap.max_recv_wr;
  attributes.max_sge = of_queue.cap.max_recv_sge;
  created = wq.get();
  context.wqs.add(wq->handle, std::move(wq));
  return 0;
}

bool may_move(ibv_wq_state from, ibv_wq_state to) {
  switch (to) {
    case IBV_WQS_RESET:
    case IBV_WQS_ERR: return true;
    case IBV_WQS_RDY: return from != IBV_WQS_ERR;
    default: return false;
  }
}

int check_change(const Wq& wq, const ibv_wq_attr& attributes) {
  const std::uint32_t mask = attributes.attr_mask;
  if (mask & ~kKnownAttributes) return EINVAL;
  if ((mask & IBV_WQ_ATTR_CURR_STATE) && attributes.curr_wq_state != wq.state) return EINVAL;
  if ((mask & IBV_WQ_ATTR_STATE) && !may_move(wq.state, attributes.wq_state)) return EINVAL;
  if (!(mask & IBV_WQ_ATTR_FLAGS)) return 0;
  return attributes.flags & ~attributes.flags_mask ? EINVAL : check_flags(attributes.flags_mask, kFlagsThatChange);
}

int move_queue(Qp& queue, ibv_qp_state state) {
  ibv_qp_attr to{};
  to.qp_state = state;
  to.port_num = 1;
  return change_qp(queue, to, state == IBV_QPS_INIT ? IBV_QP_STATE | IBV_QP_PORT : IBV_QP_STATE);
}

int make_ready(Qp& queue) {
  if (const int error = move_queue(queue, IBV_QPS_INIT)) return error;
  const int error = move_queue(queue, IBV_QPS_RTR);
  if (error != 0) move_queue(queue, IBV_QPS_RESET);
  return error;
}

int move(Wq& wq, ibv_wq_state state) {
  if (state == IBV_WQS_RDY) return wq.state == IBV_WQS_RDY ? 0 : make_ready(*wq.queue);
  return move_queue(*wq.queue, state == IBV_WQS_RESET ? IBV_QPS_RESET : IBV_QPS_ERR);
}

bool is_to_strip(const Wq& wq) { return wq.queue->create_flags & IBV_QP_CREATE_CVLAN_STRIPPING; }

// Sets VLAN stripping on the device while frames arrive. For a queue in RESET this is done when it becomes ready.
int tell_stripping(Wq& wq) {
  if (wq.strips == is_to_strip(wq)) return 0;
  abi::Qpc context;
  context.flags = is_to_strip(wq) ? abi::Qpc::kStripVlan : 0;
  const auto command = provider::modify_qp(wq.queue->qp_base.handle, abi::qp_attr::kStripVlan, context);
  if (const int error = wq.owner().execute(command)) return error;
  wq.strips = is_to_strip(wq);
  return 0;
}

int change_stripping(Wq& wq, bool strip) {
  std::uint32_t& flags = wq.queue->create_flags;
  flags = (flags & ~std::uint32_t{IBV_QP_CREATE_CVLAN_STRIPPING}) | (strip ? IBV_QP_CREATE_CVLAN_STRIPPING : 0);
  return wq.state == IBV_WQS_RDY ? tell_stripping(wq) : 0;
}

int modify(Wq& wq, const ibv_wq_attr& attributes) {
  if (!resolves(wq)) return ENOENT;
  if (const int error = check_change(wq, attributes)) return error;
  if ((attributes.attr_mask & IBV_WQ_ATTR_FLAGS) && attributes.flags_mask != 0)
    if (const int error = change_stripping(wq, attributes.flags & IBV_WQ_FLAGS_CVLAN_STRIPPING)) return error;
  if (!(attributes.attr_mask & IBV_WQ_ATTR_STATE)) return 0;
  if (const int error = move(wq, attributes.wq_state)) return error;
  wq.state = attributes.wq_state;
  return wq.state == IBV_WQS_RDY ? tell_stripping(wq) : 0;
}

bool is_in(const IndirectionTable& table, const Wq& wq) {
  return std::ranges::find(table.queues, &wq) != table.queues.end();
}

int destroy(Wq& wq) {
  Context& context = wq.owner();
  if (!resolves(wq)) return ENOENT;
  if (context.tables.any_of([&](const IndirectionTable& table) { return is_in(table, wq); })) return EBUSY;
  if (const int error = release_qp(*wq.queue)) return error;
  const std::unique_ptr<Wq> last = context.wqs.take(wq.handle);
  context.events.purge([&](const abi::EventRecord& record) { return names_qp(record, last->wq_num); });
  wait_acknowledged(context.port, last->mutex, last->events_completed, last->events_delivered, "ibv_destroy_wq");
  pthread_cond_destroy(&last->cond);
  pthread_mutex_destroy(&last->mutex);
  return 0;
}

}  // namespace

bool resolves(const Wq& wq) { return wq.owner().wqs.holds(wq.handle, &wq); }

// The header's inline function initialises mutex and condition.
ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* attributes) {
  return guarded_object<ibv_wq>([&](ibv_wq*& made) { return create(Context::of(context), *attributes, made); });
}

int modify_wq(ibv_wq* wq, ibv_wq_attr* attributes) {
  return guarded([&] { return modify(Wq::of(wq), *attributes); });
}

int destroy_wq(ibv_wq* wq) {
  return guarded([&] { return destroy(Wq::of(wq)); });
}

}  // namespace rnicsim::verbs
