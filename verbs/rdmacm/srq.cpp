// SPDX-License-Identifier: Apache-2.0
// rdma_create_srq(3).
#include <infiniband/verbs.h>

#include <utility>

#include "verbs/ibverbs/boundary.h"
#include "verbs/rdmacm/id.h"

namespace rnicsim::rdmacm {

namespace {

// Sets the domain and the CQ of an XRC SRQ, if the program did not pass them.
int choose_for_xrc(Id& id, ibv_srq_init_attr_ex& attributes) {
  if ((attributes.comp_mask & IBV_SRQ_INIT_ATTR_XRCD) == 0 || attributes.xrcd == nullptr) {
    if (const int error = default_xrcd(id.port, *id.device, attributes.xrcd)) return error;
  }
  if ((attributes.comp_mask & IBV_SRQ_INIT_ATTR_CQ) == 0 || attributes.cq == nullptr) {
    if (id.recv_cq == nullptr) {
      if (const int error = create_receive_cq(id, attributes.attr.max_wr)) return error;
    }
    attributes.cq = id.recv_cq;
  }
  attributes.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  return 0;
}

int make_srq(Id& id, ibv_srq_init_attr_ex& attributes) {
  if (attributes.srq_type == IBV_SRQT_XRC) {
    if (const int error = choose_for_xrc(id, attributes)) return error;
  }
  ibv_srq* srq = ibv_create_srq_ex(id.verbs, &attributes);
  if (srq == nullptr) return errno;
  id.srq = srq;
  return 0;
}

int create_srq(Id& id, ibv_srq_init_attr_ex& attributes) {
  if ((attributes.comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 || id.device == nullptr) return EINVAL;
  if ((attributes.comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attributes.pd == nullptr) {
    attributes.pd = id.pd;
    attributes.comp_mask |= IBV_SRQ_INIT_ATTR_PD;
  }
  const bool had_receive_cq = id.recv_cq != nullptr;
  const int error = make_srq(id, attributes);
  if (error != 0 && !had_receive_cq) destroy_receive_cq(id);
  return error;
}

int create_srq(Id& id, ibv_pd* pd, ibv_srq_init_attr& attributes) {
  ibv_srq_init_attr_ex extended{};
  extended.srq_context = attributes.srq_context;
  extended.attr = attributes.attr;
  extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  extended.srq_type = id.qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
  extended.pd = pd;
  if (const int error = create_srq(id, extended)) return error;
  attributes.attr = extended.attr;
  return 0;
}

}  // namespace

void destroy_srq(Id& id) {
  if (id.srq != nullptr) ibv_destroy_srq(std::exchange(id.srq, nullptr));
  destroy_cqs(id);
}

}  // namespace rnicsim::rdmacm

using namespace rnicsim::rdmacm;
using rnicsim::verbs::guarded_minus_one;

extern "C" {

int rdma_create_srq(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* attr) {
  return guarded_minus_one([&] { return create_srq(Id::of(id), pd, *attr); });
}

int rdma_create_srq_ex(rdma_cm_id* id, ibv_srq_init_attr_ex* attr) {
  return guarded_minus_one([&] { return create_srq(Id::of(id), *attr); });
}

void rdma_destroy_srq(rdma_cm_id* id) { destroy_srq(Id::of(id)); }

}  // extern "C"
