// SPDX-License-Identifier: Apache-2.0
#include "verbs/rsockets/connection.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace rnicsim::rsockets {

namespace {

int error_of(const rdma_cm_event& event) {
  switch (event.event) {
    case RDMA_CM_EVENT_REJECTED: return ECONNREFUSED;  // event.status is the reject reason
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR: return event.status != 0 ? std::abs(event.status) : ECONNABORTED;
    case RDMA_CM_EVENT_UNREACHABLE: return event.status != 0 ? std::abs(event.status) : ETIMEDOUT;
    case RDMA_CM_EVENT_DEVICE_REMOVAL: return ENODEV;
    case RDMA_CM_EVENT_DISCONNECTED: return ECONNRESET;
    default: return std::abs(event.status);
  }
}

bool has_parameters(rdma_cm_event_type type) {
  return type == RDMA_CM_EVENT_CONNECT_REQUEST || type == RDMA_CM_EVENT_ESTABLISHED ||
         type == RDMA_CM_EVENT_CONNECT_RESPONSE;
}

void copy(const rdma_cm_event& from, ConnectionEvent& to) {
  to.type = from.event;
  to.error = error_of(from);
  to.id = from.id;
  if (!has_parameters(from.event)) return;
  to.parameters = from.param.conn;
  to.parameters.private_data = nullptr;
  if (from.param.conn.private_data == nullptr) {
    to.parameters.private_data_len = 0;
    return;
  }
  std::memcpy(to.private_data.data(), from.param.conn.private_data, from.param.conn.private_data_len);
}

}  // namespace

Connection::~Connection() {
  if (id_ != nullptr) rdma_destroy_id(id_);
  if (channel_ != nullptr) rdma_destroy_event_channel(channel_);
}

int Connection::open_channel() {
  channel_ = rdma_create_event_channel();
  if (channel_ == nullptr) return errno;
  return ::fcntl(channel_->fd, F_SETFL, O_NONBLOCK) != 0 ? errno : 0;
}

int Connection::create(rdma_port_space space) {
  if (const int error = open_channel()) return error;
  return rdma_create_id(channel_, &id_, nullptr, space) != 0 ? errno : 0;
}

int Connection::adopt(rdma_cm_id* id) {
  id_ = id;
  if (const int error = open_channel()) return error;
  return rdma_migrate_id(id_, channel_) != 0 ? errno : 0;
}

int Connection::next(ConnectionEvent& event) {
  rdma_cm_event* raw = nullptr;
  if (rdma_get_cm_event(channel_, &raw) != 0) return errno;
  copy(*raw, event);
  rdma_ack_cm_event(raw);
  return 0;
}

int Connection::wait() const {
  pollfd descriptor{channel_->fd, POLLIN, 0};
  return ::poll(&descriptor, 1, -1) < 0 ? errno : 0;
}

int Connection::expect(rdma_cm_event_type expected) {
  for (;;) {
    ConnectionEvent event;
    const int error = next(event);
    if (error == 0) return event.type == expected ? 0 : event.error != 0 ? event.error : EPROTO;
    if (error != EAGAIN) return error;
    if (const int interrupted = wait(); interrupted != 0 && interrupted != EINTR) return interrupted;
  }
}

}  // namespace rnicsim::rsockets
