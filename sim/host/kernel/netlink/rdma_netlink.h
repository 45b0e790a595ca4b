// SPDX-License-Identifier: Apache-2.0
// RDMA netlink (NETLINK_RDMA): the host's RDMA devices and ports, as the command `rdma` asks for them. Objects of
// processes and counters are not reported.
#pragma once

#include "sim/host/kernel/netlink/netlink_protocol.h"

namespace rnicsim::clock {

extern const NetlinkProtocol kRdmaNetlink;

}  // namespace rnicsim::clock
