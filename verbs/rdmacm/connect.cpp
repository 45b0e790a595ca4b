// SPDX-License-Identifier: Apache-2.0
// Connections and SIDR lookups: connect, listen, accept, reject, disconnect.
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstring>

#include "verbs/ibverbs/boundary.h"
#include "verbs/rdmacm/id.h"

namespace rnicsim::rdmacm {

namespace {

constexpr std::uint8_t kMostRetries = 7;           // field of 3 bits
constexpr std::uint8_t kVendorOptionRefused = 35;  // IBTA reject reason: vendor option not supported
constexpr std::uint8_t kReasonOfTheConsumer = 0;   // the kernel sets the reason "consumer reject"

int check_parameters(const Id& id, const rdma_conn_param* given) {
  if (id.device == nullptr) return EINVAL;
  if (id.ps != RDMA_PS_TCP) return 0;
  if (given == nullptr) return id.qp != nullptr ? 0 : EINVAL;
  const bool within =
      (given->responder_resources == RDMA_MAX_RESP_RES ||
       given->responder_resources <= id.device->max_responder_resources) &&
      (given->initiator_depth == RDMA_MAX_INIT_DEPTH || given->initiator_depth <= id.device->max_initiator_depth);
  return within ? 0 : EINVAL;
}

bool append_private_data(kernel::rdma_ucm_conn_param& to, const void* data, std::size_t bytes) {
  if (data == nullptr || bytes == 0) return true;
  if (to.private_data_len + bytes > UINT8_MAX) return false;
  std::memcpy(to.private_data + to.private_data_len, data, bytes);
  to.private_data_len = std::uint8_t(to.private_data_len + bytes);
  return true;
}

// responder_resources and initiator_depth are taken from the id.
int fill_parameters(const Id& id, const rdma_conn_param* given, kernel::rdma_ucm_conn_param& to) {
  if (id.qp != nullptr) {
    to.qp_num = id.qp->qp_num;
    to.srq = id.qp->srq != nullptr;
  } else if (given != nullptr) {
    to.qp_num = given->qp_num;
    to.srq = given->srq;
  }
  to.responder_resources = id.responder_resources;
  to.initiator_depth = id.initiator_depth;
  to.flow_control = given != nullptr ? given->flow_control : 0;
  to.retry_count = given != nullptr ? given->retry_count : kMostRetries;
  to.rnr_retry_count = given != nullptr ? given->rnr_retry_count : kMostRetries;
  to.valid = 1;
  const bool fits = append_private_data(to, id.connect_data.data(), id.connect_data.size()) &&
                    (given == nullptr || append_private_data(to, given->private_data, given->private_data_len));
  return fits ? 0 : EINVAL;
}

int connect(Id& id, const rdma_conn_param* given) {
  if (const int error = check_parameters(id, given)) return error;
  const bool deepest = given == nullptr || given->initiator_depth == RDMA_MAX_INIT_DEPTH;
  const bool most = given == nullptr || given->responder_resources == RDMA_MAX_RESP_RES;
  id.initiator_depth = deepest ? id.device->max_initiator_depth : given->initiator_depth;
  id.responder_resources = most ? id.device->max_responder_resources : given->responder_resources;
  kernel::rdma_ucm_connect command{};
  command.id = id.handle;
  command.ece = id.local_ece;
  if (const int error = fill_parameters(id, given, command.conn_param)) return error;
  if (const int error = id.events().tell(kernel::RDMA_USER_CM_CMD_CONNECT, command)) return error;
  id.connect_data.clear();
  return complete(id);
}

int listen(Id& id, int backlog) {
  const kernel::rdma_ucm_listen command{.id = id.handle, .backlog = std::uint32_t(backlog)};
  if (const int error = id.events().tell(kernel::RDMA_USER_CM_CMD_LISTEN, command)) return error;
  return query_address(id);
}

// At most the values of the request, which the id holds since the CONNECT_REQUEST event.
void choose_depths(Id& id, const rdma_conn_param* given) {
  if (given == nullptr || given->initiator_depth == RDMA_MAX_INIT_DEPTH) {
    id.initiator_depth = std::min(id.initiator_depth, id.device->max_initiator_depth);
  } else {
    id.initiator_depth = given->initiator_depth;
  }
  if (given == nullptr || given->responder_resources == RDMA_MAX_RESP_RES) {
    id.responder_resources = std::min(id.responder_resources, id.device->max_responder_resources);
  } else {
    id.responder_resources = given->responder_resources;
  }
}

int send_acceptance(Id& id, const rdma_conn_param* given) {
  kernel::rdma_ucm_accept command{};
  command.uid = reinterpret_cast<std::uintptr_t>(&id);
  command.id = id.handle;
  command.ece = {.vendor_id = id.remote_ece.vendor_id, .attr_mod = id.local_ece.attr_mod};
  if (const int error = fill_parameters(id, given, command.conn_param)) return error;
  return id.events().tell(kernel::RDMA_USER_CM_CMD_ACCEPT, command);
}

int accept(Id& id, const rdma_conn_param* given) {
  if (id.qp == nullptr && given == nullptr) return EINVAL;
  if (const int error = check_parameters(id, given)) return error;
  choose_depths(id, given);
  if (!id.datagram()) {
    if (const int error = ready_to_receive(id, id.responder_resources)) return error;
    if (const int error = ready_to_send(id, id.initiator_depth)) return error;
  }
  if (const int error = send_acceptance(id, given)) {
    to_error(id);
    return error;
  }
  if (!id.datagram()) return complete(id);
  // No event follows a SIDR reply.
  if (id.synchronous()) acknowledge_last(id);
  return 0;
}

int disconnect(Id& id) {
  if (id.verbs == nullptr) return EINVAL;
  if (const int error = to_error(id)) return error;
  const kernel::rdma_ucm_disconnect command{.id = id.handle};
  if (const int error = id.events().tell(kernel::RDMA_USER_CM_CMD_DISCONNECT, command)) return error;
  return complete(id);
}

int notify(Id& id, ibv_event_type event) {
  const kernel::rdma_ucm_notify command{.id = id.handle, .event = std::uint32_t(event)};
  return id.events().tell(kernel::RDMA_USER_CM_CMD_NOTIFY, command);
}

}  // namespace

int finish_connection(Id& id) {
  int error = ready_to_receive(id, RDMA_MAX_RESP_RES);
  if (error == 0) error = ready_to_send(id, RDMA_MAX_INIT_DEPTH);
  if (error == 0) {
    kernel::rdma_ucm_accept command{};
    command.id = id.handle;
    error = id.events().tell(kernel::RDMA_USER_CM_CMD_ACCEPT, command);
  }
  if (error != 0) to_error(id);
  return error;
}

int reject(Id& id, const void* private_data, std::uint8_t bytes, std::uint8_t reason) {
  kernel::rdma_ucm_reject command{};
  command.id = id.handle;
  command.reason = reason;
  if (private_data != nullptr) {
    command.private_data_len = bytes;
    std::memcpy(command.private_data, private_data, bytes);
  }
  return id.events().tell(kernel::RDMA_USER_CM_CMD_REJECT, command);
}

}  // namespace rnicsim::rdmacm

using namespace rnicsim::rdmacm;
using rnicsim::verbs::guarded_minus_one;

extern "C" {

int rdma_connect(rdma_cm_id* id, rdma_conn_param* conn_param) {
  return guarded_minus_one([&] { return connect(Id::of(id), conn_param); });
}

int rdma_listen(rdma_cm_id* id, int backlog) {
  return guarded_minus_one([&] { return listen(Id::of(id), backlog); });
}

int rdma_accept(rdma_cm_id* id, rdma_conn_param* conn_param) {
  return guarded_minus_one([&] { return accept(Id::of(id), conn_param); });
}

int rdma_reject(rdma_cm_id* id, const void* private_data, std::uint8_t private_data_len) {
  return guarded_minus_one([&] { return reject(Id::of(id), private_data, private_data_len, kReasonOfTheConsumer); });
}

int rdma_reject_ece(rdma_cm_id* id, const void* private_data, std::uint8_t private_data_len) {
  return guarded_minus_one([&] { return reject(Id::of(id), private_data, private_data_len, kVendorOptionRefused); });
}

int rdma_disconnect(rdma_cm_id* id) {
  return guarded_minus_one([&] { return disconnect(Id::of(id)); });
}

int rdma_establish(rdma_cm_id* id) {
  return guarded_minus_one([&] { return id->qp == nullptr ? finish_connection(Id::of(id)) : EINVAL; });
}

int rdma_notify(rdma_cm_id* id, ibv_event_type event) {
  return guarded_minus_one([&] { return notify(Id::of(id), event); });
}

}  // extern "C"
