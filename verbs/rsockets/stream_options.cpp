// SPDX-License-Identifier: Apache-2.0
// Socket options, and local and peer addresses.
#include <arpa/inet.h>
#include <infiniband/sa.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>

#include <cerrno>
#include <utility>

#include "verbs/rsockets/keepalive.h"
#include "verbs/rsockets/option_value.h"
#include "verbs/rsockets/size_options.h"
#include "verbs/rsockets/stream.h"

namespace rnicsim::rsockets {

namespace {

constexpr int kUnknownPathMtu = 2048;

// A path record in the layout of SA messages.
ibv_path_data path_data(const ibv_sa_path_rec& path) {
  constexpr std::uint8_t kExactly = 2 << 6;
  ibv_path_data data{};
  data.path.dgid = path.dgid;
  data.path.sgid = path.sgid;
  data.path.dlid = path.dlid;
  data.path.slid = path.slid;
  data.path.flowlabel_hoplimit = htonl(ntohl(path.flow_label) << 8 | path.hop_limit);
  data.path.tclass = path.traffic_class;
  data.path.reversible_numpath = std::uint8_t((path.reversible != 0 ? 1 << 7 : 0) | 1);
  data.path.pkey = path.pkey;
  data.path.qosclass_sl = htons(path.sl);
  data.path.mtu = path.mtu | kExactly;
  data.path.rate = path.rate | kExactly;
  data.path.packetlifetime = path.packet_life_time | kExactly;
  data.flags = path.preference;
  return data;
}

}  // namespace

int Stream::set_keepalive(bool on) {
  keepalive_ = on;
  if (!on) {
    Keepalive::service().remove(*this);
    return 0;
  }
  if (keepalive_seconds_ == 0) keepalive_seconds_ = Keepalive::default_seconds();
  return Keepalive::service().set(shared_from_this(), std::chrono::seconds(keepalive_seconds_));
}

Answer Stream::set_socket_option(int name, const void* value, socklen_t length) {
  if (name == SO_LINGER) {
    linger linger;
    if (const int error = read_option(value, length, linger)) return -error;
    linger_ = linger.l_onoff != 0;
    return 0;
  }
  int number;
  if (const int error = read_option(value, length, number)) return -error;
  switch (name) {
    case SO_REUSEADDR:
      // The error of a connected id is ignored: the option has no effect there.
      if (rdma_set_option(connection_.id(), RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &number, sizeof number) != 0 &&
          state_ == State::idle) {
        return -errno;
      }
      reuse_address_ = number != 0;
      return 0;
    case SO_RCVBUF:
    case SO_SNDBUF: return endpoint_ != nullptr ? 0 : -set_buffer_size(sizes_, name, number);
    case SO_KEEPALIVE: return -set_keepalive(number != 0);
    case SO_OOBINLINE: out_of_band_inline_ = number != 0; return 0;
    default: return -ENOTSUP;
  }
}

Answer Stream::set_tcp_option(int name, const void* value, socklen_t length) {
  int number;
  if (const int error = read_option(value, length, number)) return -error;
  switch (name) {
    case TCP_NODELAY: no_delay_ = number != 0; return 0;
    case TCP_KEEPIDLE:
      if (number <= 0) return -EINVAL;
      keepalive_seconds_ = unsigned(number);
      return keepalive_ ? -set_keepalive(true) : 0;
    // Accepted without effect: the RDMA connection is reliable and segments the data itself.
    case TCP_KEEPCNT:
    case TCP_KEEPINTVL:
    case TCP_MAXSEG: return 0;
    default: return -ENOTSUP;
  }
}

Answer Stream::set_rdma_option(int name, const void* value, socklen_t length) {
  if (opening() || was_connected() || state_ == State::refused) return -EINVAL;
  if (name == RDMA_ROUTE) {
    if (value == nullptr || length == 0) return -EINVAL;
    const auto* bytes = static_cast<const std::byte*>(value);
    route_.assign(bytes, bytes + length);
    return 0;
  }
  int number;
  if (const int error = read_option(value, length, number)) return -error;
  return -set_rdma_size(sizes_, name, number);
}

Answer Stream::set_option(int level, int name, const void* value, socklen_t length) {
  const Lock lock(mutex_);
  switch (level) {
    case SOL_SOCKET: return set_socket_option(name, value, length);
    case IPPROTO_TCP: return set_tcp_option(name, value, length);
    case SOL_RDMA: return set_rdma_option(name, value, length);
    case IPPROTO_IPV6: break;
    default: return -ENOTSUP;
  }
  int number;
  if (name != IPV6_V6ONLY) return -ENOTSUP;
  if (const int error = read_option(value, length, number)) return -error;
  if (rdma_set_option(connection_.id(), RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &number, sizeof number) != 0) {
    return -errno;
  }
  v6_only_ = number != 0;
  return 0;
}

// The route set by RDMA_ROUTE, else the paths of the connection.
Answer Stream::get_route(void* value, socklen_t* length) const {
  if (value == nullptr || length == nullptr) return -EINVAL;
  if (!route_.empty()) {
    if (*length < route_.size()) return -EINVAL;
    std::memcpy(value, route_.data(), route_.size());
    *length = socklen_t(route_.size());
    return 0;
  }
  const rdma_route& route = connection_.id()->route;
  if (*length < sizeof(ibv_path_data)) return -EINVAL;
  socklen_t written = 0;
  for (int path = 0; path < route.num_paths && written + sizeof(ibv_path_data) <= *length; ++path) {
    const ibv_path_data data = path_data(route.path_rec[path]);
    std::memcpy(static_cast<std::byte*>(value) + written, &data, sizeof data);
    written += socklen_t(sizeof data);
  }
  *length = written;
  return 0;
}

std::optional<int> Stream::number_option(int level, int name) {
  if (level == SOL_SOCKET) {
    switch (name) {
      case SO_REUSEADDR: return reuse_address_;
      case SO_KEEPALIVE: return keepalive_;
      case SO_OOBINLINE: return out_of_band_inline_;
      case SO_RCVBUF: return int(sizes_.receive_bytes);
      case SO_SNDBUF: return int(sizes_.send_bytes);
      case SO_ERROR: return std::exchange(error_, 0);
      default: return std::nullopt;
    }
  }
  if (level == IPPROTO_TCP) {
    const rdma_route& route = connection_.id()->route;
    switch (name) {
      case TCP_KEEPCNT:
      case TCP_KEEPINTVL: return 1;
      case TCP_KEEPIDLE: return int(keepalive_seconds_);
      case TCP_NODELAY: return no_delay_;
      case TCP_MAXSEG: return route.num_paths != 0 ? 1 << (7 + route.path_rec[0].mtu) : kUnknownPathMtu;
      default: return std::nullopt;
    }
  }
  int value;
  if (level == SOL_RDMA && get_rdma_size(sizes_, name, value) == 0) return value;
  if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY) return v6_only_;
  return std::nullopt;
}

Answer Stream::get_option(int level, int name, void* value, socklen_t* length) {
  const Lock lock(mutex_);
  if (level == SOL_SOCKET && name == SO_LINGER) return -write_option(linger{linger_, 0}, value, length);
  if (level == SOL_RDMA && name == RDMA_ROUTE) return get_route(value, length);
  const std::optional<int> number = number_option(level, name);
  return number ? -write_option(*number, value, length) : -ENOTSUP;
}

Answer Stream::local_address(AddressOut out) {
  const Lock lock(mutex_);
  const sockaddr& address = *rdma_get_local_addr(connection_.id());
  SocketAddress none{};
  none.any.sa_family = sa_family_t(domain);
  put_address(address.sa_family == AF_INET || address.sa_family == AF_INET6 ? address : none.any, out);
  return 0;
}

Answer Stream::peer_address(AddressOut out) {
  const Lock lock(mutex_);
  if (state_ != State::accepting && !was_connected()) return -ENOTCONN;
  put_address(*rdma_get_peer_addr(connection_.id()), out);
  return 0;
}

}  // namespace rnicsim::rsockets
