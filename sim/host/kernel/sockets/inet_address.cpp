// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/sockets/inet_address.h"

#include <netinet/in.h>
#include <string.h>

#include <algorithm>

#include "model/abi/net_address.h"
#include "sim/host/shim/session.h"

namespace rnicsim::clock {
namespace {

std::uint32_t v4_word(const std::uint8_t* bytes) {
  std::uint32_t word;
  memcpy(&word, bytes, sizeof word);
  return ntohl(word);
}

bool is_broadcast(const abi::NetAddress& net, const abi::NetworkInterface& interface) {
  if (interface.ipv4_prefix > 30 || !in_subnet(net, interface)) return false;
  return (v4_word(net.ip + 12) | ~(0xffff'ffffu >> interface.ipv4_prefix)) == 0xffff'ffffu;
}

}  // namespace

bool is_inet(const sockaddr* address, socklen_t length) {
  if (address == nullptr) return false;
  return (address->sa_family == AF_INET && length >= sizeof(sockaddr_in)) ||
         (address->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6));
}

std::optional<sockaddr_in> as_any_v4(const sockaddr* address, socklen_t length, int family) {
  if (family != AF_INET || address == nullptr || length < sizeof(sockaddr_in) || address->sa_family != AF_UNSPEC)
    return std::nullopt;
  sockaddr_in v4;
  memcpy(&v4, address, sizeof v4);
  if (v4.sin_addr.s_addr != INADDR_ANY) return std::nullopt;
  v4.sin_family = AF_INET;
  return v4;
}

abi::NetAddress to_net(const sockaddr* address) {
  abi::NetAddress result;
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    memcpy(result.ip, abi::kMappedPrefix, sizeof abi::kMappedPrefix);
    memcpy(result.ip + 12, &v4->sin_addr, 4);
    result.port = ntohs(v4->sin_port);
  } else {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    memcpy(result.ip, &v6->sin6_addr, 16);
    result.port = ntohs(v6->sin6_port);
  }
  return result;
}

void from_net(const abi::NetAddress& net, int family, sockaddr* address, socklen_t* length) {
  sockaddr_storage full{};
  socklen_t bytes;
  if (family == AF_INET) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&full);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(net.port);
    memcpy(&v4->sin_addr, net.ip + 12, 4);
    bytes = sizeof *v4;
  } else {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&full);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(net.port);
    memcpy(&v6->sin6_addr, net.ip, 16);
    bytes = sizeof *v6;
  }
  if (address == nullptr || length == nullptr) return;
  memcpy(address, &full, std::min(*length, bytes));
  *length = bytes;
}

void put_address(abi::ThreadSlot& slot, const abi::NetAddress& net) {
  memcpy(slot.input, &net, sizeof net);
  slot.input_bytes = sizeof net;
}

bool is_simulated(const abi::NetAddress& net) {
  if (is_loopback(net) || is_wildcard(net)) return true;
  return std::ranges::any_of(session()->interfaces(),
                             [&](const abi::NetworkInterface& each) { return in_subnet(net, each); });
}

bool is_group(const abi::NetAddress& net) {
  if (!is_v4(net)) return net.ip[0] == 0xff;
  if (net.ip[12] >> 4 == 0xe || v4_word(net.ip + 12) == 0xffff'ffffu) return true;
  return std::ranges::any_of(session()->interfaces(),
                             [&](const abi::NetworkInterface& each) { return is_broadcast(net, each); });
}

}  // namespace rnicsim::clock
