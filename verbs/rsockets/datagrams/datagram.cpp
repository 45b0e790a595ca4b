// SPDX-License-Identifier: Apache-2.0
#include "verbs/rsockets/datagrams/datagram.h"

#include <rdma/rsocket.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "verbs/rsockets/datagrams/lookup_service.h"
#include "verbs/rsockets/option_value.h"
#include "verbs/rsockets/pieces.h"
#include "verbs/rsockets/settings.h"
#include "verbs/rsockets/size_options.h"

namespace rnicsim::rsockets {

namespace {

// Each slot of the queue has kLowWater bytes of buffer; the smaller of queue and buffer decides.
void fit(std::uint32_t& bytes, std::uint16_t& queue) {
  queue = std::uint16_t(std::clamp<std::uint32_t>(bytes / kLowWater, 1, std::max<std::uint16_t>(queue, 1)));
  bytes = queue * kLowWater;
}

}  // namespace

Datagram::Datagram(int domain) : Socket(domain, SOCK_DGRAM), sizes_(Sizes::defaults()) {}

Datagram::~Datagram() {
  for (auto& [key, destination] : destinations_) ibv_destroy_ah(destination.handle);
  ports_.clear();
  if (udp_ >= 0) ::close(udp_);
}

int Datagram::create() {
  udp_ = ::socket(domain, SOCK_DGRAM, 0);
  return udp_ < 0 ? errno : 0;
}

// Makes buffers and adds the socket to the lookup service; from now on peers can find the socket.
int Datagram::prepare() {
  if (prepared_) return 0;
  fit(sizes_.send_bytes, sizes_.send_queue);
  fit(sizes_.receive_bytes, sizes_.receive_queue);
  if (!slots_.make(sizes_.send_queue)) return ENOMEM;
  if (const int error = LookupService::service().add(shared_from_this())) return error;
  prepared_ = true;
  return 0;
}

Answer Datagram::connect(const sockaddr& address, socklen_t length) {
  if (length < length_of(address)) return -EINVAL;
  Lock lock(mutex_);
  if (const int error = prepare()) return -error;
  if (::connect(udp_, &address, length) != 0) return -errno;
  return -find_destination(lock, address, connected_);
}

Answer Datagram::shutdown(int) {
  const Lock lock(mutex_);
  return connected_ == nullptr ? -ENOTCONN : 0;
}

void Datagram::close() {
  LookupService::service().remove(*this);
  Lock lock(mutex_);
  closed_ = true;
  // Sends of a UD QP complete without the peer.
  while (prepared_ && wait_until(lock, true, [&] { return slots_.all_free(); }) == EINTR) {}
  waiters_.wake_others();
}

void Datagram::process() {
  bool any = false;
  std::array<ibv_wc, 16> completions;
  for (const auto& port : ports_) {
    // Fewer completions than requested: the CQ is empty, see Stream::process().
    for (int count = int(completions.size()); count == int(completions.size());) {
      count = port->completions().poll(completions);
      if (count <= 0) break;
      any = true;
      for (const ibv_wc& completion : std::span(completions).first(std::size_t(count))) {
        if ((completion.wr_id & kReceiveWork) != 0) {
          received(*port, completion);
        } else {
          slots_.release(std::uint32_t(completion.wr_id));
        }
      }
    }
  }
  if (any) waiters_.wake_others();
}

void Datagram::received(DatagramPort& port, const ibv_wc& completion) {
  const auto slot = std::uint32_t(completion.wr_id);
  if (completion.status == IBV_WC_SUCCESS && completion.byte_len >= sizeof(ibv_grh)) {
    const std::size_t length = completion.byte_len - sizeof(ibv_grh);
    SocketAddress source;
    if (const auto header = parse_datagram_header(port.received(slot), length, source)) {
      arrivals_.push_back({&port, slot, std::uint32_t(*header), std::uint32_t(length - *header), {}, source});
      return;
    }
  }
  port.post_receive(slot);
}

void Datagram::finish(const Arrival& arrival) {
  if (arrival.port != nullptr) arrival.port->post_receive(arrival.slot);
}

Answer Datagram::receive(std::span<const iovec> into, int flags, AddressOut source) {
  if ((flags & MSG_OOB) != 0) return -EOPNOTSUPP;
  Lock lock(mutex_);
  if (!prepared_) return -EINVAL;  // no peer can know the socket yet
  const int error = wait_until(lock, waits(flags), [&] { return !arrivals_.empty() || closed_; });
  if (error != 0) return -error;
  if (arrivals_.empty()) return -EBADF;
  const Arrival& arrival = arrivals_.front();
  const auto length = std::uint32_t(std::min<std::size_t>(bytes_of(into), arrival.length));
  const Answer answer = (flags & MSG_TRUNC) != 0 ? arrival.length : length;
  const std::byte* bytes =
      (arrival.port != nullptr ? arrival.port->received(arrival.slot) : arrival.bytes.data()) + arrival.offset;
  Sink(into).copy(bytes, length);
  if (source.address != nullptr) put_address(arrival.source.any, source);
  if ((flags & MSG_PEEK) != 0) return answer;
  finish(arrival);
  arrivals_.pop_front();
  return answer;
}

Answer Datagram::send(std::span<const iovec> from, int flags, const sockaddr* destination, socklen_t length) {
  if ((flags & MSG_OOB) != 0) return -EOPNOTSUPP;
  if (destination != nullptr && length < length_of(*destination)) return -EINVAL;
  Lock lock(mutex_);
  if (const int error = prepare()) return -error;
  Destination* to = connected_;
  if (destination != nullptr) {
    if (const int error = find_destination(lock, *destination, to)) return -error;
  }
  if (to == nullptr) return -EDESTADDRREQ;
  if (to->port->header().length + bytes_of(from) > to->port->longest()) return -EMSGSIZE;
  if (!to->qp_number) return send_by_udp(*to, Op::data, from, flags);
  return send_direct(lock, waits(flags), *to, from);
}

Answer Datagram::send_direct(Lock& lock, bool waits, Destination& destination, std::span<const iovec> from) {
  if (!slots_.any_free()) {
    if (const int error = wait_until(lock, waits, [&] { return slots_.any_free(); })) return -error;
  }
  const std::uint32_t slot = slots_.take();
  const DatagramHeader& header = destination.port->header();
  std::byte* bytes = slots_.bytes(slot);
  const std::size_t length = bytes_of(from);
  std::memcpy(bytes, header.bytes.data(), header.length);
  Source(from).copy(bytes + header.length, length);
  const int error = destination.port->post_send(slot, bytes, std::uint32_t(header.length + length), destination.handle,
                                                *destination.qp_number);
  if (error == 0) return Answer(length);
  slots_.release(slot);
  return -error;
}

void Datagram::arm() {
  for (const auto& port : ports_) port->completions().arm();
}

void Datagram::watch(std::vector<pollfd>& descriptors) {
  for (const auto& port : ports_) descriptors.push_back({port->completions().fd(), POLLIN, 0});
}

// Ports added during the wait are at the end of ports_, and not in `descriptors`.
void Datagram::take_events(std::span<const pollfd> descriptors) {
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    if (descriptors[i].revents != 0) ports_[i]->completions().take_event();
  }
}

short Datagram::look(short events) {
  const Lock lock(mutex_);
  process();
  short found = 0;
  if (!arrivals_.empty()) found |= POLLIN;
  if (!prepared_ || slots_.any_free()) found |= POLLOUT;
  return short(found & events);
}

Answer Datagram::peer_address(AddressOut out) {
  const Lock lock(mutex_);
  if (connected_ == nullptr) return -ENOTCONN;
  put_address(connected_->address.any, out);
  return 0;
}

Answer Datagram::set_option(int level, int name, const void* value, socklen_t length) {
  const Lock lock(mutex_);
  int number;
  if (level == SOL_RDMA) {
    if (prepared_ || name == RDMA_ROUTE || name == RDMA_IOMAPSIZE) return prepared_ ? -EINVAL : -ENOTSUP;
    if (const int error = read_option(value, length, number)) return -error;
    return -set_rdma_size(sizes_, name, number);
  }
  if (::setsockopt(udp_, level, name, value, length) != 0) return -errno;
  if (level != SOL_SOCKET || (name != SO_RCVBUF && name != SO_SNDBUF) || prepared_) return 0;
  if (const int error = read_option(value, length, number)) return -error;
  return -set_buffer_size(sizes_, name, number);
}

Answer Datagram::get_option(int level, int name, void* value, socklen_t* length) {
  const Lock lock(mutex_);
  if (level == SOL_RDMA) {
    int number;
    if (const int error = get_rdma_size(sizes_, name, number)) return -error;
    return -write_option(number, value, length);
  }
  if (level == SOL_SOCKET && name == SO_RCVBUF) return -write_option(int(sizes_.receive_bytes), value, length);
  if (level == SOL_SOCKET && name == SO_SNDBUF) return -write_option(int(sizes_.send_bytes), value, length);
  return ::getsockopt(udp_, level, name, value, length) != 0 ? -errno : 0;
}

}  // namespace rnicsim::rsockets
