// SPDX-License-Identifier: Apache-2.0
// rdma_getaddrinfo(3), based on getaddrinfo(3). No service provides routes or connection data in advance.
#include <infiniband/ib.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "verbs/ibverbs/boundary.h"
#include "verbs/rdmacm/devices.h"

namespace rnicsim::rdmacm {

namespace {

struct FreeInfo {
  void operator()(rdma_addrinfo* info) const { rdma_freeaddrinfo(info); }
  void operator()(addrinfo* info) const { ::freeaddrinfo(info); }
};
using RdmaInfo = std::unique_ptr<rdma_addrinfo, FreeInfo>;
using Info = std::unique_ptr<addrinfo, FreeInfo>;

int socket_type(int qp_type) {
  switch (qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV: return SOCK_STREAM;
    case IBV_QPT_UD: return SOCK_DGRAM;
    default: return 0;
  }
}

int protocol(int port_space, int type_of_socket) {
  switch (port_space) {
    case RDMA_PS_TCP: return IPPROTO_TCP;
    case RDMA_PS_IPOIB:
    case RDMA_PS_UDP: return IPPROTO_UDP;
    case RDMA_PS_IB:
      if (type_of_socket == SOCK_STREAM) return IPPROTO_TCP;
      return type_of_socket == SOCK_DGRAM ? IPPROTO_UDP : 0;
    default: return 0;
  }
}

addrinfo to_socket_hints(const rdma_addrinfo& hints) {
  addrinfo result{};
  if ((hints.ai_flags & RAI_PASSIVE) != 0) result.ai_flags |= AI_PASSIVE;
  if ((hints.ai_flags & RAI_NUMERICHOST) != 0) result.ai_flags |= AI_NUMERICHOST;
  result.ai_family = hints.ai_family;
  result.ai_socktype = socket_type(hints.ai_qp_type);
  result.ai_protocol = protocol(hints.ai_port_space, result.ai_socktype);
  return result;
}

int copy_address(const sockaddr* from, socklen_t size, sockaddr*& to, socklen_t& to_size) {
  to = static_cast<sockaddr*>(std::malloc(size));
  if (to == nullptr) return ENOMEM;
  std::memcpy(to, from, size);
  to_size = size;
  return 0;
}

int qp_type_of(int type_of_socket) {
  if (type_of_socket == SOCK_STREAM) return IBV_QPT_RC;
  return type_of_socket == SOCK_DGRAM ? IBV_QPT_UD : 0;
}

int port_space_of(int of_protocol) {
  if (of_protocol == IPPROTO_TCP) return RDMA_PS_TCP;
  return of_protocol == IPPROTO_UDP ? RDMA_PS_UDP : 0;
}

int convert(const addrinfo& from, const rdma_addrinfo& hints, rdma_addrinfo& to) {
  to.ai_family = from.ai_family;
  to.ai_qp_type = hints.ai_qp_type != 0 ? hints.ai_qp_type : qp_type_of(from.ai_socktype);
  to.ai_port_space = hints.ai_port_space != 0 ? hints.ai_port_space : port_space_of(from.ai_protocol);
  const bool passive = (from.ai_flags & AI_PASSIVE) != 0;
  if (passive) to.ai_flags = RAI_PASSIVE;
  if (from.ai_canonname != nullptr) {
    char* name = ::strdup(from.ai_canonname);
    if (name == nullptr) return ENOMEM;
    (passive ? to.ai_src_canonname : to.ai_dst_canonname) = name;
  }
  return passive ? copy_address(from.ai_addr, from.ai_addrlen, to.ai_src_addr, to.ai_src_len)
                 : copy_address(from.ai_addr, from.ai_addrlen, to.ai_dst_addr, to.ai_dst_len);
}

int copy_hints(const rdma_addrinfo& hints, rdma_addrinfo& to) {
  to.ai_flags = hints.ai_flags;
  to.ai_family = hints.ai_family;
  to.ai_qp_type = hints.ai_qp_type;
  to.ai_port_space = hints.ai_port_space;
  return hints.ai_dst_len != 0 ? copy_address(hints.ai_dst_addr, hints.ai_dst_len, to.ai_dst_addr, to.ai_dst_len) : 0;
}

// Returns an errno. `resolver_error` is the result of getaddrinfo(3).
int look_up(const char* node, const char* service, const rdma_addrinfo* hints, rdma_addrinfo& to, int& resolver_error) {
  addrinfo* first = nullptr;
  addrinfo socket_hints{};
  if (hints != nullptr) socket_hints = to_socket_hints(*hints);
  resolver_error = ::getaddrinfo(node, service, hints != nullptr ? &socket_hints : nullptr, &first);
  if (resolver_error != 0) return 0;
  const Info found(first);
  return convert(*found, hints != nullptr ? *hints : rdma_addrinfo{}, to);
}

int find(const char* node, const char* service, const rdma_addrinfo* hints, RdmaInfo& found, int& resolver_error) {
  if (node == nullptr && service == nullptr && hints == nullptr) return EINVAL;
  if (!has_devices()) return ENODEV;
  if (hints != nullptr && hints->ai_family == AF_IB) {
    resolver_error = EAI_FAMILY;
    return 0;
  }
  RdmaInfo info(static_cast<rdma_addrinfo*>(std::calloc(1, sizeof(rdma_addrinfo))));
  if (info == nullptr) return ENOMEM;
  const int error = node != nullptr || service != nullptr ? look_up(node, service, hints, *info, resolver_error)
                                                          : copy_hints(*hints, *info);
  if (error != 0 || resolver_error != 0) return error;
  if (hints != nullptr && info->ai_src_len == 0 && hints->ai_src_len != 0) {
    if (const int copied = copy_address(hints->ai_src_addr, hints->ai_src_len, info->ai_src_addr, info->ai_src_len))
      return copied;
  }
  found = std::move(info);
  return 0;
}

}  // namespace

}  // namespace rnicsim::rdmacm

using namespace rnicsim::rdmacm;

extern "C" {

// Returns 0, -1 with errno set, or an error code of getaddrinfo(3).
int rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints, rdma_addrinfo** res) {
  int resolver_error = 0;
  RdmaInfo found;
  const int result =
      rnicsim::verbs::guarded_minus_one([&] { return find(node, service, hints, found, resolver_error); });
  if (result != 0 || resolver_error != 0) return result != 0 ? result : resolver_error;
  *res = found.release();
  return 0;
}

void rdma_freeaddrinfo(rdma_addrinfo* res) {
  while (res != nullptr) {
    rdma_addrinfo* info = std::exchange(res, res->ai_next);
    std::free(info->ai_connect);
    std::free(info->ai_route);
    std::free(info->ai_src_canonname);
    std::free(info->ai_dst_canonname);
    std::free(info->ai_src_addr);
    std::free(info->ai_dst_addr);
    std::free(info);
  }
}

}  // extern "C"
