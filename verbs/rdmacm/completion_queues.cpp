// SPDX-License-Identifier: Apache-2.0
// CQs and completion channels that an id creates when the program passes no CQ.
#include <infiniband/verbs.h>

#include <cerrno>
#include <utility>

#include "verbs/rdmacm/id.h"

namespace rnicsim::rdmacm {

namespace {

int make(Id& id, std::uint32_t size, ibv_comp_channel*& channel, ibv_cq*& cq) {
  channel = ibv_create_comp_channel(id.verbs);
  if (channel == nullptr) return errno;
  cq = ibv_create_cq(id.verbs, int(size), static_cast<rdma_cm_id*>(&id), channel, 0);
  if (cq != nullptr) return 0;
  const int error = errno;
  ibv_destroy_comp_channel(std::exchange(channel, nullptr));
  return error;
}

void unmake(ibv_comp_channel*& channel, ibv_cq*& cq) {
  if (cq != nullptr) ibv_destroy_cq(std::exchange(cq, nullptr));
  if (channel != nullptr) ibv_destroy_comp_channel(std::exchange(channel, nullptr));
}

}  // namespace

int create_send_cq(Id& id, std::uint32_t size) { return make(id, size, id.send_cq_channel, id.send_cq); }

int create_receive_cq(Id& id, std::uint32_t size) { return make(id, size, id.recv_cq_channel, id.recv_cq); }

void destroy_send_cq(Id& id) { unmake(id.send_cq_channel, id.send_cq); }

void destroy_receive_cq(Id& id) { unmake(id.recv_cq_channel, id.recv_cq); }

void destroy_cqs(Id& id) {
  if (id.qp_type == IBV_QPT_XRC_RECV && id.srq != nullptr) return;  // the CQs belong to the SRQ
  destroy_receive_cq(id);
  destroy_send_cq(id);
}

}  // namespace rnicsim::rdmacm
