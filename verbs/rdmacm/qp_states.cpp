// SPDX-License-Identifier: Apache-2.0
// State transitions of an id's QP, with the attributes that the kernel's connection manager provides.
#include <infiniband/verbs.h>

#include "verbs/ibverbs/boundary.h"
#include "verbs/rdmacm/id.h"

extern "C" {
void ibv_copy_qp_attr_from_kern(ibv_qp_attr* to, ib_uverbs_qp_attr* from);
}

namespace rnicsim::rdmacm {

namespace {

// Moves the QP to `state` with the kernel's attributes.
int move(Id& id, ibv_qp& qp, ibv_qp_state state) {
  ibv_qp_attr attributes{};
  int mask = 0;
  attributes.qp_state = state;
  if (const int error = init_qp_attributes(id, attributes, mask)) return error;
  return ibv_modify_qp(&qp, &attributes, mask);
}

int move_datagram_to_rts(ibv_qp& qp) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  if (const int error = ibv_modify_qp(&qp, &attributes, IBV_QP_STATE)) return error;
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = 0;
  return ibv_modify_qp(&qp, &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

}  // namespace

int init_qp_attributes(Id& id, ibv_qp_attr& attributes, int& mask) {
  const kernel::rdma_ucm_init_qp_attr command{
      .response = 0, .id = id.handle, .qp_state = std::uint32_t(attributes.qp_state)};
  ib_uverbs_qp_attr answer{};
  if (const int error = id.events().ask(kernel::RDMA_USER_CM_CMD_INIT_QP_ATTR, command, answer)) return error;
  ibv_copy_qp_attr_from_kern(&attributes, &answer);
  mask = int(answer.qp_attr_mask);
  return 0;
}

int make_usable(Id& id, ibv_qp& qp) {
  if (const int error = move(id, qp, IBV_QPS_INIT)) return error;
  return id.datagram() ? move_datagram_to_rts(qp) : 0;
}

int ready_to_receive(Id& id, std::uint8_t responder_resources) {
  if (id.qp == nullptr) return 0;
  // INIT again: the access rights of the peer are known only now.
  if (const int error = move(id, *id.qp, IBV_QPS_INIT)) return error;
  ibv_qp_attr attributes{};
  int mask = 0;
  attributes.qp_state = IBV_QPS_RTR;
  if (const int error = init_qp_attributes(id, attributes, mask)) return error;
  if (responder_resources != RDMA_MAX_RESP_RES) attributes.max_dest_rd_atomic = responder_resources;
  return ibv_modify_qp(id.qp, &attributes, mask);
}

int ready_to_send(Id& id, std::uint8_t initiator_depth) {
  if (id.qp == nullptr) return 0;
  ibv_qp_attr attributes{};
  int mask = 0;
  attributes.qp_state = IBV_QPS_RTS;
  if (const int error = init_qp_attributes(id, attributes, mask)) return error;
  if (initiator_depth != RDMA_MAX_INIT_DEPTH) attributes.max_rd_atomic = initiator_depth;
  return ibv_modify_qp(id.qp, &attributes, mask);
}

int to_error(Id& id) {
  if (id.qp == nullptr) return 0;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  return ibv_modify_qp(id.qp, &attributes, IBV_QP_STATE);
}

}  // namespace rnicsim::rdmacm

using namespace rnicsim::rdmacm;

extern "C" int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* qp_attr, int* qp_attr_mask) {
  return rnicsim::verbs::guarded_minus_one([&] { return init_qp_attributes(Id::of(id), *qp_attr, *qp_attr_mask); });
}
