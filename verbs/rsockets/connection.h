// SPDX-License-Identifier: Apache-2.0
// An rdma_cm_id with a non-blocking event channel of its own.
#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <cstddef>

namespace rnicsim::rsockets {

// Contents of an event that is already acknowledged.
struct ConnectionEvent {
  rdma_cm_event_type type{};
  int error = 0;  // positive errno, or 0
  rdma_cm_id* id = nullptr;
  rdma_conn_param parameters{};  // private_data is NULL; see the next member
  std::array<std::byte, 256> private_data{};
};

class Connection {
 public:
  Connection() = default;
  // Disconnects if necessary.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The calls return 0 or a positive errno.
  int create(rdma_port_space space);
  // Takes over the id of a connection request from the listener's channel.
  int adopt(rdma_cm_id* id);
  // Takes the next event. EAGAIN: there is none.
  int next(ConnectionEvent& event);
  // Waits for an event. EINTR: a signal came first.
  int wait() const;
  // Waits for the next event. An error, if it is another one than `expected`.
  int expect(rdma_cm_event_type expected);

  rdma_cm_id* id() const { return id_; }
  int fd() const { return channel_->fd; }

 private:
  int open_channel();

  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* id_ = nullptr;
};

}  // namespace rnicsim::rsockets
