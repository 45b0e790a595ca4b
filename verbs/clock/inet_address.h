// Addresses of the simulated network, as programs give them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// An address of IPv4 or IPv6, complete.
bool is_inet(const sockaddr* address, socklen_t length);

// What some programs bind to: of no family, and all zeroes, it is IPv4's wildcard to a socket of IPv4.
std::optional<sockaddr_in> as_any_v4(const sockaddr* address, socklen_t length, int family);

abi::NetAddress to_net(const sockaddr* address);
// As a socket of this family tells it.
void from_net(const abi::NetAddress& net, int family, sockaddr* address, socklen_t* length);
void put_address(abi::ThreadSlot& slot, const abi::NetAddress& net);

// An address of the simulated network: the host itself, or a subnet of one of the hosts.
bool is_simulated(const abi::NetAddress& net);
// More than one host hears what is sent there: multicast, broadcast.
bool is_group(const abi::NetAddress& net);

}  // namespace rnicsim::clock
