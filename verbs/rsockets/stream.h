// SPDX-License-Identifier: Apache-2.0
// A SOCK_STREAM rsocket.
//
// Locks: a call holds send_mutex_ or receive_mutex_ until it returns, so that the bytes of two calls do not mix.
// mutex_ of Socket is taken after them. It protects all other members and is free while the call sleeps.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "verbs/rsockets/connection.h"
#include "verbs/rsockets/endpoint.h"
#include "verbs/rsockets/flow.h"
#include "verbs/rsockets/pieces.h"
#include "verbs/rsockets/settings.h"
#include "verbs/rsockets/socket.h"

namespace rnicsim::rsockets {

class Stream final : public Socket, public std::enable_shared_from_this<Stream> {
 public:
  explicit Stream(int domain);
  ~Stream() override;

  // Called first. Returns 0 or a positive errno.
  int create();

  int fd() const override { return connection_.fd(); }

  Answer bind(const sockaddr& address, socklen_t length) override;
  Answer listen(int backlog) override;
  Answer accept(SocketRef& accepted) override;
  Answer connect(const sockaddr& address, socklen_t length) override;
  Answer shutdown(int how) override;
  void close() override;

  Answer receive(std::span<const iovec> into, int flags, AddressOut source) override;
  Answer send(std::span<const iovec> from, int flags, const sockaddr* destination, socklen_t length) override;

  Answer local_address(AddressOut out) override;
  Answer peer_address(AddressOut out) override;
  Answer set_option(int level, int name, const void* value, socklen_t length) override;
  Answer get_option(int level, int name, void* value, socklen_t* length) override;

  Answer map(void* buffer, std::size_t length, int protection, std::int64_t offset) override;
  Answer unmap(void* buffer, std::size_t length) override;
  Answer write_mapped(const void* buffer, std::size_t length, std::int64_t offset, int flags) override;

  short look(short events) override;

  // Sends a message without data. It fails if the peer is gone.
  void send_keepalive();

 private:
  enum class State {
    idle,
    bound,
    listening,
    resolving_address,
    resolving_route,
    connecting,
    accepting,
    connected,
    disconnected,
    refused,  // no connection was established
    broken,   // the connection ended by an error
  };

  bool opening() const { return state_ >= State::resolving_address && state_ <= State::accepting; }
  bool was_connected() const {
    return state_ == State::connected || state_ == State::disconnected || state_ == State::broken;
  }

  // Connecting (stream_connect.cpp). Return 0 or a positive errno; EINPROGRESS: not finished.
  int resolve_address();
  int resolve_route();
  int request_connection();
  int advance();
  int advance(Lock& lock, bool waits);
  int follow(const ConnectionEvent& event);
  int follow_failed(const ConnectionEvent& event);
  int refuse(int error);
  int learn_peer(const ConnectionEvent& event);
  void establish();
  int make_endpoint();
  int answer_request(Lock& lock, const ConnectionEvent& request, const Stream& listener);
  int ready_for_data(Lock& lock, bool waits);

  // Completions, and the sends that they permit (stream_completions.cpp).
  void process() override;
  void arm() override;
  void watch(std::vector<pollfd>& descriptors) override;
  void take_events(std::span<const pollfd> descriptors) override;
  void received(const ibv_wc& completion);
  void sent(const ibv_wc& completion);
  void take_control(std::uint32_t value);
  void take_mapping(std::uint32_t index);
  void follow_connection();
  void give_credits();
  void send_grant();
  void post(Message message, bool immediate, std::span<ibv_sge> pieces, bool inlined, const Extent& target);
  void disconnected();
  void broke(int error);
  bool sends_done() const;
  bool can_post() const { return send_places_ != 0 && send_ring_.available() >= kLowWater && window_.open(); }
  bool can_send() const { return can_post() && targets_.room() != 0; }
  bool can_receive() const { return !receive_ring_.empty() || !readable_; }

  // Sending (stream_send.cpp).
  int may_send() const;
  // Waits until a message can be posted; with `room`, also until the peer has room for data.
  int wait_to_post(Lock& lock, bool waits, bool room);
  void post_bytes(Source& source, Message message, bool immediate, const Extent& target);
  // Result of a call that sent `bytes` before the error.
  static Answer sent_or(std::size_t bytes, int error) { return bytes != 0 || error == 0 ? Answer(bytes) : -error; }

  // Mappings (stream_iomap.cpp).
  struct LocalMapping {
    ibv_mr* region;
    std::uint64_t offset;
    std::optional<std::uint32_t> index;  // entry in the peer's list; nullopt: a local mapping only
    bool told;
  };
  int tell_mappings(Lock& lock, bool waits);
  std::optional<std::uint32_t> free_mapping_index() const;
  const Mapping* peer_mapping(std::uint64_t offset) const;
  void release_mappings();

  // Options (stream_options.cpp).
  Answer set_socket_option(int name, const void* value, socklen_t length);
  Answer set_tcp_option(int name, const void* value, socklen_t length);
  Answer set_rdma_option(int name, const void* value, socklen_t length);
  Answer get_route(void* value, socklen_t* length) const;
  std::optional<int> number_option(int level, int name);
  int set_keepalive(bool on);

  Connection connection_;
  std::unique_ptr<Endpoint> endpoint_;  // destroyed before connection_

  std::mutex send_mutex_;
  std::mutex receive_mutex_;

  State state_ = State::idle;
  bool readable_ = false;
  bool writable_ = false;
  bool shut_for_sending_ = false;  // by shutdown() of this side
  int error_ = 0;                  // value of SO_ERROR
  unsigned attempts_ = 0;          // attempts to resolve
  SocketAddress destination_{};

  Sizes sizes_;
  bool reuse_address_ = false;
  bool out_of_band_inline_ = false;
  bool linger_ = true;
  bool no_delay_ = false;
  bool v6_only_ = false;
  bool keepalive_ = false;
  unsigned keepalive_seconds_ = 0;  // 0: not set
  std::vector<std::byte> route_;    // from option RDMA_ROUTE: replaces the resolved route

  bool swapped_ = false;  // the peer has the other byte order
  std::uint32_t send_places_ = 0;
  SendWindow window_;
  ReceiveWindow receive_window_;
  ControlPlaces controls_;
  SendRing send_ring_;
  ReceiveRing receive_ring_;
  Targets targets_;
  Extent peer_list_;              // the peer's list of targets; length: entries
  std::uint32_t peer_entry_ = 0;  // next entry to write
  Extent peer_mapping_list_;      // length: entries
  std::vector<Mapping> peer_mappings_;
  std::list<LocalMapping> mappings_;
  std::vector<std::byte> scratch_;  // copy of inline data that had several pieces
};

}  // namespace rnicsim::rsockets
