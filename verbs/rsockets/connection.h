// A communication identifier with an event channel of its own that never blocks.
#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <cstddef>

namespace rnicsim::rsockets {

// What an event says, after it is acknowledged.
struct ConnectionEvent {
  rdma_cm_event_type type{};
  int error = 0;  // a positive errno
  rdma_cm_id* id = nullptr;
  rdma_conn_param parameters{};  // private_data: see below
  std::array<std::byte, 256> private_data{};
};

class Connection {
 public:
  Connection() = default;
  // Tears down what is left of the connection.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Each: 0 or a positive errno.
  int create(rdma_port_space space);
  // A request's identifier, from the listener's channel.
  int adopt(rdma_cm_id* id);
  // EAGAIN: there is none.
  int next(ConnectionEvent& event);
  // Sleeps until there is one; EINTR.
  int wait() const;
  // The next event, which is to be `expected`.
  int expect(rdma_cm_event_type expected);

  rdma_cm_id* id() const { return id_; }
  int fd() const { return channel_->fd; }

 private:
  int open_channel();

  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* id_ = nullptr;
};

}  // namespace rnicsim::rsockets
