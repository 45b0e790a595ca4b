// Addresses of the simulated network, as programs give them.
#pragma once

#include <sys/socket.h>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// An address of IPv4 or IPv6, complete.
bool is_inet(const sockaddr* address, socklen_t length);

abi::NetAddress to_net(const sockaddr* address);
// As a socket of this family tells it.
void from_net(const abi::NetAddress& net, int family, sockaddr* address, socklen_t* length);
void put_address(abi::ThreadSlot& slot, const abi::NetAddress& net);

// An address of the simulated network: the host itself, or a subnet of one of the hosts.
bool is_simulated(const abi::NetAddress& net);
// More than one host hears what is sent there: multicast, broadcast.
bool is_group(const abi::NetAddress& net);

}  // namespace rnicsim::clock
