// SPDX-License-Identifier: Apache-2.0
// A datagram socket's UD QP for one local address.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <optional>

#include "verbs/rsockets/completion_queue.h"
#include "verbs/rsockets/connection.h"
#include "verbs/rsockets/endpoint.h"
#include "verbs/rsockets/socket.h"

namespace rnicsim::rsockets {

// Send slots of kLowWater bytes each, shared by all ports of a socket.
class SendSlots {
 public:
  // False: out of memory.
  bool make(std::uint32_t count);
  bool any_free() const { return !free_.empty(); }
  bool all_free() const { return free_.size() == count_; }
  std::uint32_t take();
  void release(std::uint32_t slot) { free_.push_back(slot); }
  std::byte* bytes(std::uint32_t slot) const;
  std::byte* all() const { return bytes_.get(); }
  std::size_t size() const;

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> free_;
};

class DatagramPort {
 public:
  DatagramPort() = default;
  ~DatagramPort();
  DatagramPort(const DatagramPort&) = delete;
  DatagramPort& operator=(const DatagramPort&) = delete;

  // Creates the QP and posts all receives. Returns 0 or a positive errno.
  int make(const SocketAddress& local, Sizes& sizes, const SendSlots& slots);

  const SocketAddress& address() const { return address_; }
  const DatagramHeader& header() const { return header_; }
  CompletionQueue& completions() { return completions_; }
  std::uint32_t qp_number() const { return connection_.id()->qp->qp_num; }
  // Most bytes of one packet, including the header.
  std::uint32_t longest() const { return longest_; }

  const std::byte* received(std::uint32_t slot) const;
  int post_receive(std::uint32_t slot);
  int post_send(std::uint32_t slot, const std::byte* bytes, std::uint32_t length, ibv_ah* to, std::uint32_t qp_number);

  // An address handle for the route. nullptr: failed, errno is set.
  ibv_ah* make_handle(const rdma_route& route) const;

 private:
  int make_queue_pair(Sizes& sizes);
  std::optional<std::uint8_t> gid_index(const ibv_gid& gid) const;

  Connection connection_;
  SocketAddress address_{};
  DatagramHeader header_;
  std::uint32_t longest_ = 0;
  std::uint32_t inline_bytes_ = 0;
  std::size_t grh_offset_ = 0;
  CompletionQueue completions_;
  RegisteredMemory receive_;
  ibv_mr* send_region_ = nullptr;
};

}  // namespace rnicsim::rsockets
