// SPDX-License-Identifier: Apache-2.0
// Endpoints: a synchronous id and its QP, made in one call.
#include <infiniband/verbs.h>

#include <cstddef>

#include "verbs/ibverbs/boundary.h"
#include "verbs/rdmacm/id.h"

namespace rnicsim::rdmacm {

namespace {

constexpr int kTimeoutMs = 2000;

int make_passive(Id& id, const rdma_addrinfo& info, ibv_pd* pd, const ibv_qp_init_attr* attributes) {
  if (const int error = bind_address(id, info.ai_src_addr)) return error;
  if (pd != nullptr) id.pd = pd;
  if (attributes != nullptr) {
    id.connection_attributes = *attributes;
    id.connection_attributes->qp_type = ibv_qp_type(info.ai_qp_type);
  }
  return 0;
}

int find_route(Id& id, const rdma_addrinfo& info) {
  if (info.ai_route_len == 0) return resolve_route(id, kTimeoutMs);
  if (const int error = set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, info.ai_route, info.ai_route_len))
    return error;
  return complete(id);
}

int make_active(Id& id, const rdma_addrinfo& info, ibv_pd* pd, ibv_qp_init_attr* attributes) {
  if (const int error = resolve_address(id, info.ai_src_addr, info.ai_dst_addr, kTimeoutMs)) return error;
  if (const int error = find_route(id, info)) return error;
  if (attributes != nullptr) {
    attributes->qp_type = ibv_qp_type(info.ai_qp_type);
    if (const int error = create_qp(id, pd, *attributes)) return error;
  }
  const auto* data = static_cast<const std::byte*>(info.ai_connect);
  id.connect_data.assign(data, data + info.ai_connect_len);
  return 0;
}

int destroy_endpoint(Id& id) {
  if (id.qp != nullptr) destroy_qp(id);
  if (id.srq != nullptr) destroy_srq(id);
  return destroy_id(id);
}

int create_endpoint(const rdma_addrinfo& info, ibv_pd* pd, ibv_qp_init_attr* attributes, Id*& created) {
  Id* id = nullptr;
  if (const int error =
          create_id(nullptr, nullptr, rdma_port_space(info.ai_port_space), ibv_qp_type(info.ai_qp_type), id))
    return error;
  const int error = (info.ai_flags & RAI_PASSIVE) != 0 ? make_passive(*id, info, pd, attributes)
                                                       : make_active(*id, info, pd, attributes);
  if (error != 0) {
    destroy_endpoint(*id);
    return error;
  }
  created = id;
  return 0;
}

int check_request(const Id& listener, const rdma_cm_event& event) {
  if (const int error = outcome(event)) return error;
  if (event.event != RDMA_CM_EVENT_CONNECT_REQUEST) return EINVAL;
  if (!listener.connection_attributes) return 0;
  ibv_qp_init_attr attributes = *listener.connection_attributes;
  return create_qp(Id::of(event.id), listener.pd, attributes);
}

// The event belongs to the new id, or on failure to the listener, until the next synchronous operation acknowledges
// it.
int get_request(Id& listener, rdma_cm_id*& connection) {
  if (!listener.synchronous()) return EINVAL;
  acknowledge_last(listener);
  rdma_cm_event* event = nullptr;
  if (const int error = next_event(listener.events(), event)) return error;
  if (const int error = check_request(listener, *event)) {
    listener.event = event;
    return error;
  }
  connection = event->id;
  connection->event = event;
  return 0;
}

}  // namespace

}  // namespace rnicsim::rdmacm

using namespace rnicsim::rdmacm;
using rnicsim::verbs::guarded_minus_one;

extern "C" {

int rdma_create_ep(rdma_cm_id** id, rdma_addrinfo* res, ibv_pd* pd, ibv_qp_init_attr* qp_init_attr) {
  return guarded_minus_one([&] {
    Id* created = nullptr;
    if (const int error = create_endpoint(*res, pd, qp_init_attr, created)) return error;
    *id = created;
    return 0;
  });
}

void rdma_destroy_ep(rdma_cm_id* id) {
  guarded_minus_one([&] { return destroy_endpoint(Id::of(id)); });
}

int rdma_get_request(rdma_cm_id* listen, rdma_cm_id** id) {
  return guarded_minus_one([&] { return get_request(Id::of(listen), *id); });
}

}  // extern "C"
