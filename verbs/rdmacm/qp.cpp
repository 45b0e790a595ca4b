// SPDX-License-Identifier: Apache-2.0
// rdma_create_qp(3).
#include <infiniband/verbs.h>

#include <utility>

#include "verbs/ibverbs/boundary.h"
#include "verbs/rdmacm/id.h"

namespace rnicsim::rdmacm {

namespace {

bool differ(const ibv_cq* ours, const ibv_cq* asked) { return ours != nullptr && asked != nullptr && ours != asked; }

int choose_pd(const Id& id, ibv_qp_init_attr_ex& attributes) {
  if ((attributes.comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attributes.pd == nullptr) {
    attributes.comp_mask |= IBV_QP_INIT_ATTR_PD;
    attributes.pd = id.pd;
  }
  return attributes.pd->context == id.verbs ? 0 : EINVAL;
}

int choose_xrcd(Id& id, ibv_qp_init_attr_ex& attributes) {
  if (id.qp_type != IBV_QPT_XRC_RECV) return 0;
  if ((attributes.comp_mask & IBV_QP_INIT_ATTR_XRCD) != 0 && attributes.xrcd != nullptr) return 0;
  attributes.comp_mask |= IBV_QP_INIT_ATTR_XRCD;
  return default_xrcd(id.port, *id.device, attributes.xrcd);
}

// Creates the CQs that the program did not pass. They stay in the id even if this function fails.
int choose_cqs(Id& id, ibv_qp_init_attr_ex& attributes) {
  if (attributes.recv_cq == nullptr) {
    if (id.recv_cq == nullptr && attributes.cap.max_recv_wr != 0) {
      if (const int error = create_receive_cq(id, attributes.cap.max_recv_wr)) return error;
    }
    attributes.recv_cq = id.recv_cq;
  }
  if (attributes.send_cq == nullptr) {
    if (id.send_cq == nullptr && attributes.cap.max_send_wr != 0) {
      if (const int error = create_send_cq(id, attributes.cap.max_send_wr)) return error;
    }
    attributes.send_cq = id.send_cq;
  }
  return 0;
}

// The id gets the QP only after the QP has reached a usable state.
int make_qp(Id& id, ibv_qp_init_attr_ex& attributes) {
  if (const int error = choose_cqs(id, attributes)) return error;
  if (attributes.srq == nullptr) attributes.srq = id.srq;
  ibv_qp* qp = ibv_create_qp_ex(id.verbs, &attributes);
  if (qp == nullptr) return errno;
  int error = exchange_ece(id, *qp);
  if (error == 0) error = make_usable(id, *qp);
  if (error != 0) {
    ibv_destroy_qp(qp);
    return error;
  }
  id.pd = qp->pd;
  id.qp = qp;
  return 0;
}

}  // namespace

int create_qp(Id& id, ibv_qp_init_attr_ex& attributes) {
  if (id.qp != nullptr || id.device == nullptr) return EINVAL;
  if (const int error = choose_pd(id, attributes)) return error;
  if (differ(id.recv_cq, attributes.recv_cq) || differ(id.send_cq, attributes.send_cq)) return EINVAL;
  ibv_qp_init_attr_ex chosen = attributes;
  if (const int error = choose_xrcd(id, chosen)) return error;
  const bool had_receive_cq = id.recv_cq != nullptr;
  const bool had_send_cq = id.send_cq != nullptr;
  if (const int error = make_qp(id, chosen)) {
    if (!had_receive_cq) destroy_receive_cq(id);
    if (!had_send_cq) destroy_send_cq(id);
    return error;
  }
  attributes = chosen;
  return 0;
}

int create_qp(Id& id, ibv_pd* pd, ibv_qp_init_attr& attributes) {
  ibv_qp_init_attr_ex extended{};
  extended.qp_context = attributes.qp_context;
  extended.send_cq = attributes.send_cq;
  extended.recv_cq = attributes.recv_cq;
  extended.srq = attributes.srq;
  extended.cap = attributes.cap;
  extended.qp_type = attributes.qp_type;
  extended.sq_sig_all = attributes.sq_sig_all;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD;
  extended.pd = pd;
  if (const int error = create_qp(id, extended)) return error;
  attributes.send_cq = extended.send_cq;
  attributes.recv_cq = extended.recv_cq;
  attributes.srq = extended.srq;
  attributes.cap = extended.cap;
  return 0;
}

void destroy_qp(Id& id) {
  if (id.qp != nullptr) ibv_destroy_qp(std::exchange(id.qp, nullptr));
  destroy_cqs(id);
}

}  // namespace rnicsim::rdmacm

using namespace rnicsim::rdmacm;
using rnicsim::verbs::guarded_minus_one;

extern "C" {

int rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* qp_init_attr) {
  return guarded_minus_one([&] { return create_qp(Id::of(id), pd, *qp_init_attr); });
}

int rdma_create_qp_ex(rdma_cm_id* id, ibv_qp_init_attr_ex* qp_init_attr) {
  return guarded_minus_one([&] { return create_qp(Id::of(id), *qp_init_attr); });
}

void rdma_destroy_qp(rdma_cm_id* id) { destroy_qp(Id::of(id)); }

}  // extern "C"
