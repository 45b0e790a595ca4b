// RDMA netlink (NETLINK_RDMA): the host's RDMA devices and their ports, as `rdma` asks for them. What objects processes
// have, and what is counted, it does not tell.
#pragma once

#include "verbs/clock/netlink_protocol.h"

namespace rnicsim::clock {

extern const NetlinkProtocol kRdmaNetlink;

}  // namespace rnicsim::clock
