// SPDX-License-Identifier: Apache-2.0
// Socket addresses of the simulated network.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// True: a whole address of IPv4 or IPv6.
bool is_inet(const sockaddr* address, socklen_t length);

// The IPv4 wildcard for an address of family AF_UNSPEC with IP 0.0.0.0, to which some programs bind IPv4 sockets;
// nullopt: another address.
std::optional<sockaddr_in> as_any_v4(const sockaddr* address, socklen_t length, int family);

abi::NetAddress to_net(const sockaddr* address);
// Writes the address as a socket of family `family` reports it.
void from_net(const abi::NetAddress& net, int family, sockaddr* address, socklen_t* length);
void put_address(abi::ThreadSlot& slot, const abi::NetAddress& net);

// True: loopback, a wildcard, or an address in the subnet of a host.
bool is_simulated(const abi::NetAddress& net);
// True: multicast or broadcast.
bool is_group(const abi::NetAddress& net);

}  // namespace rnicsim::clock
