// SPDX-License-Identifier: Apache-2.0
#include "tests/soak/connections_walk/ports.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rnicsim::testing {
namespace {

std::uint32_t ipv4_of(Place::Kind kind, std::uint32_t host) {
  const auto of_host = [](std::uint32_t number) { return 10u << 24 | number << 8 | 1; };
  switch (kind) {
    case Place::Kind::loopback: return 127u << 24 | 1;
    case Place::Kind::own: return of_host(host);
    case Place::Kind::peer: return of_host(1 - host);
    case Place::Kind::nobody: return of_host(200);
    case Place::Kind::away: return 192u << 24 | 168u << 16 | 1u << 8 | 1;
    case Place::Kind::group: return 239u << 24 | 1u << 16 | 2u << 8 | 3;
    default: return 0;
  }
}

void set_ipv6(Place::Kind kind, std::uint32_t host, in6_addr& address) {
  std::uint8_t* bytes = address.s6_addr;
  const auto of_host = [&](std::uint32_t number) {
    bytes[0] = 0xfd;
    bytes[13] = std::uint8_t(number);
    bytes[15] = 1;
  };
  switch (kind) {
    case Place::Kind::loopback: bytes[15] = 1; break;
    case Place::Kind::own: of_host(host); break;
    case Place::Kind::peer: of_host(1 - host); break;
    case Place::Kind::nobody: of_host(200); break;
    case Place::Kind::away: bytes[0] = 0x20, bytes[15] = 1; break;
    case Place::Kind::link_local: bytes[0] = 0xfe, bytes[1] = 0x80, bytes[15] = 1; break;
    case Place::Kind::group: bytes[0] = 0xff, bytes[1] = 0x0e, bytes[15] = 3; break;
    default: break;
  }
}

}  // namespace

sockaddr_storage Place::address(std::uint32_t host) const {
  sockaddr_storage storage{};
  if (!usable()) {
    storage.ss_family = AF_UNIX;
  } else if (ipv6) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    set_ipv6(kind, host, in.sin6_addr);
    std::memcpy(&storage, &in, sizeof in);
  } else {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    in.sin_addr.s_addr = htonl(ipv4_of(kind, host));
    std::memcpy(&storage, &in, sizeof in);
  }
  return storage;
}

std::string Place::text() const {
  constexpr const char* kNames[] = {"any",  "loopback",   "own",   "peer",   "nobody",
                                    "away", "link-local", "group", "strange"};
  return std::string(kNames[std::size_t(kind)]) + (ipv6 ? ", IPv6, " : ", ") + std::to_string(port);
}

std::set<int> Ports::answers(rdma_port_space space, Owner owner, const Binding& binding) const {
  std::set<int> errors;
  const auto found = bindings_.find(space);
  if (binding.place.port == 0 || found == bindings_.end()) return {0};
  for (const auto& [other, theirs] : found->second) {
    if (other == owner || theirs.place.port != binding.place.port) continue;
    if (binding.reuse && !binding.listens && theirs.reuse && !theirs.listens) continue;
    const bool other_family = theirs.place.ipv6 != binding.place.ipv6;
    if (other_family && theirs.family_only && binding.family_only) continue;
    if (theirs.place.wildcard() || binding.place.wildcard())
      errors.insert(EADDRNOTAVAIL);
    else if (!other_family)
      errors.insert(EADDRINUSE);
  }
  return errors.empty() ? std::set{0} : errors;
}

void Ports::remove(Owner owner) {
  for (auto& [space, entries] : bindings_) std::erase_if(entries, [&](const Entry& e) { return e.owner == owner; });
}

Binding* Ports::find(Owner owner) {
  for (auto& [space, entries] : bindings_)
    for (Entry& entry : entries)
      if (entry.owner == owner) return &entry.binding;
  return nullptr;
}

Ports::Owner Ports::listener(rdma_port_space space, const Place& place) const {
  const auto found = bindings_.find(space);
  if (found == bindings_.end()) return nullptr;
  for (const auto& [owner, theirs] : found->second) {
    if (!theirs.listens || theirs.place.port != place.port || theirs.place.ipv6 != place.ipv6) continue;
    if (theirs.place.wildcard() || theirs.place.kind == Place::Kind::own) return owner;
  }
  return nullptr;
}

std::vector<Place> Ports::listening(rdma_port_space space, bool from_peer) const {
  std::vector<Place> places;
  const auto found = bindings_.find(space);
  if (found == bindings_.end()) return places;
  for (const auto& [owner, theirs] : found->second) {
    if (!theirs.listens || theirs.place.kind == Place::Kind::loopback) continue;
    places.push_back({from_peer ? Place::Kind::peer : Place::Kind::own, theirs.place.ipv6, theirs.place.port});
  }
  return places;
}

}  // namespace rnicsim::testing
