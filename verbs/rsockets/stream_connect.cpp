// SPDX-License-Identifier: Apache-2.0
// Establishes connections, on the active and the passive side.
#include <cerrno>
#include <cstring>
#include <utility>

#include "verbs/rsockets/stream.h"

namespace rnicsim::rsockets {

namespace {

constexpr int kFirstTimeoutMs = 1000;
constexpr unsigned kMostAttempts = 7;  // the timeout doubles with each attempt
constexpr std::uint8_t kMostRetries = 7;

SocketAddress wildcard(int domain) {
  SocketAddress address{};
  address.any.sa_family = sa_family_t(domain);
  return address;
}

bool is_address(const sockaddr& address, socklen_t length) {
  return (address.sa_family == AF_INET || address.sa_family == AF_INET6) && length >= length_of(address);
}

}  // namespace

Stream::Stream(int domain) : Socket(domain, SOCK_STREAM), sizes_(Sizes::defaults()) {}

Stream::~Stream() { release_mappings(); }

int Stream::create() { return connection_.create(RDMA_PS_TCP); }

Answer Stream::bind(const sockaddr& address, socklen_t length) {
  if (!is_address(address, length)) return -EINVAL;
  const Lock lock(mutex_);
  SocketAddress copy{};
  std::memcpy(&copy, &address, length_of(address));
  if (rdma_bind_addr(connection_.id(), &copy.any) != 0) return -errno;
  state_ = State::bound;
  return 0;
}

Answer Stream::listen(int backlog) {
  const Lock lock(mutex_);
  if (state_ == State::listening) return 0;
  if (state_ == State::idle) {
    SocketAddress any = wildcard(domain);
    if (rdma_bind_addr(connection_.id(), &any.any) != 0) return -errno;
    state_ = State::bound;
  }
  if (rdma_listen(connection_.id(), backlog) != 0) return -errno;
  state_ = State::listening;
  return 0;
}

Answer Stream::accept(SocketRef& accepted) {
  Lock lock(mutex_);
  if (state_ != State::listening) return -EINVAL;
  ConnectionEvent request;
  for (;;) {
    const int error = connection_.next(request);
    if (error == 0 && request.type == RDMA_CM_EVENT_CONNECT_REQUEST) break;
    if (error == 0 && request.type == RDMA_CM_EVENT_DEVICE_REMOVAL) return -ENODEV;
    if (error == 0) continue;
    if (error != EAGAIN || !waits(0)) return -error;
    lock.unlock();
    const int interrupted = connection_.wait();
    lock.lock();
    if (interrupted != 0) return -interrupted;
  }
  lock.unlock();
  const auto made = std::make_shared<Stream>(domain);
  Lock made_lock(made->mutex_);
  if (const int error = made->answer_request(made_lock, request, *this)) return -error;
  accepted = made;
  return 0;
}

// A blocking listener waits until the accepted socket is connected. With a non-blocking listener the socket connects
// later, so that one thread can serve both sides.
int Stream::answer_request(Lock& lock, const ConnectionEvent& request, const Stream& listener) {
  sizes_ = listener.sizes_;
  if (const int error = connection_.adopt(request.id)) return error;
  if (const int error = make_endpoint()) return error;
  if (const int error = learn_peer(request)) return error;
  const auto data = encode(endpoint_->describe(sizes_));
  rdma_conn_param parameters = request.parameters;
  parameters.private_data = data.data();
  parameters.private_data_len = std::uint8_t(data.size());
  if (rdma_accept(connection_.id(), &parameters) != 0) return errno;
  state_ = State::accepting;
  const int error = advance(lock, listener.waits(0));
  return error == EINPROGRESS ? 0 : error;
}

Answer Stream::connect(const sockaddr& address, socklen_t length) {
  if (!is_address(address, length)) return -EAFNOSUPPORT;
  Lock lock(mutex_);
  if (was_connected()) return -EISCONN;
  if (opening()) {
    const int error = advance(lock, waits(0));
    return error == EINPROGRESS ? -EALREADY : -error;
  }
  if (state_ != State::idle && state_ != State::bound) return -EINVAL;
  std::memcpy(&destination_, &address, length_of(address));
  attempts_ = 0;
  if (const int error = resolve_address()) return -refuse(error);
  return -advance(lock, waits(0));
}

int Stream::resolve_address() {
  const int timeout = kFirstTimeoutMs << attempts_++;
  if (rdma_resolve_addr(connection_.id(), nullptr, &destination_.any, timeout) != 0) return errno;
  state_ = State::resolving_address;
  return 0;
}

int Stream::resolve_route() {
  const int timeout = kFirstTimeoutMs << attempts_++;
  state_ = State::resolving_route;
  if (route_.empty()) return rdma_resolve_route(connection_.id(), timeout) != 0 ? errno : 0;
  const std::vector<std::byte> route = std::exchange(route_, {});
  return rdma_set_option(connection_.id(), RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, const_cast<std::byte*>(route.data()),
                         route.size()) != 0
             ? errno
             : 0;
}

int Stream::request_connection() {
  if (const int error = make_endpoint()) return error;
  const auto data = encode(endpoint_->describe(sizes_));
  rdma_conn_param parameters{};
  parameters.private_data = data.data();
  parameters.private_data_len = std::uint8_t(data.size());
  parameters.flow_control = 1;
  parameters.retry_count = kMostRetries;
  parameters.rnr_retry_count = kMostRetries;
  if (rdma_connect(connection_.id(), &parameters) != 0) return errno;
  state_ = State::connecting;
  return 0;
}

int Stream::make_endpoint() {
  endpoint_ = std::make_unique<Endpoint>(connection_.id());
  if (const int error = endpoint_->make(sizes_)) return error;
  send_places_ = sizes_.send_queue - kControlPlaces;
  send_ring_ = SendRing(sizes_.send_bytes);
  receive_ring_ = ReceiveRing(sizes_.receive_bytes / 2);
  receive_window_ = ReceiveWindow(sizes_.receive_queue);
  return 0;
}

// The connection could not be established.
int Stream::refuse(int error) {
  state_ = State::refused;
  error_ = error;
  return error;
}

int Stream::advance() {
  ConnectionEvent event;
  while (opening()) {
    if (const int error = connection_.next(event)) return error == EAGAIN ? EINPROGRESS : refuse(error);
    if (const int error = follow(event)) return refuse(error);
  }
  return state_ == State::refused ? ECONNREFUSED : 0;
}

int Stream::advance(Lock& lock, bool waits) {
  for (;;) {
    const int error = advance();
    if (error != EINPROGRESS || !waits) return error;
    lock.unlock();
    const int interrupted = connection_.wait();
    lock.lock();
    if (interrupted != 0) return interrupted;
  }
}

int Stream::follow(const ConnectionEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED: attempts_ = 0; return resolve_route();
    case RDMA_CM_EVENT_ROUTE_RESOLVED: return request_connection();
    case RDMA_CM_EVENT_ESTABLISHED:
      if (state_ == State::connecting) {
        if (const int error = learn_peer(event)) return error;
      }
      establish();
      return 0;
    default: return follow_failed(event);
  }
}

int Stream::follow_failed(const ConnectionEvent& event) {
  if (event.error == ETIMEDOUT && attempts_ < kMostAttempts) {
    if (event.type == RDMA_CM_EVENT_ADDR_ERROR) return resolve_address();
    if (event.type == RDMA_CM_EVENT_ROUTE_ERROR) return resolve_route();
  }
  return event.error;  // 0: the event has no meaning here
}

// Takes over the peer's private data.
int Stream::learn_peer(const ConnectionEvent& event) {
  const auto data = decode_connection_data(event.private_data.data(), event.parameters.private_data_len);
  if (!data || data->version != kConnectionVersion) return ENOTSUP;
  if (data->targets.length == 0) return EPROTO;
  swapped_ = data->big_endian != ConnectionData{}.big_endian;
  peer_list_ = data->targets;
  peer_entry_ = 1 % peer_list_.length;
  peer_mapping_list_ = {peer_list_.address + sizeof(WireExtent) * peer_list_.length, peer_list_.key,
                        data->iomap_entries};
  targets_ = Targets(data->buffer);
  window_ = SendWindow(data->credits);
  return 0;
}

void Stream::establish() {
  state_ = State::connected;
  readable_ = writable_ = true;
  // This thread's own wait ends, too: it watches the connection and not the CQ yet.
  waiters_.wake_all();
}

// For calls that need a connection: waits for a connection that is being established.
int Stream::ready_for_data(Lock& lock, bool waits) {
  if (opening()) {
    const int error = advance(lock, waits);
    if (error != 0) return error == EINPROGRESS ? EAGAIN : error;
  }
  return was_connected() ? 0 : ENOTCONN;
}

}  // namespace rnicsim::rsockets
