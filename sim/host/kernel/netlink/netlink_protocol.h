// SPDX-License-Identifier: Apache-2.0
// One NETLINK_ protocol of a simulated host: the functions that answer its requests.
#pragma once

#include <cstdint>

#include "sim/host/kernel/netlink/netlink_dump.h"
#include "sim/host/kernel/netlink/network_devices.h"

namespace rnicsim::clock {

// A NETLINK_ protocol of the host. Errors are numbers of errno.
struct NetlinkProtocol {
  bool (*is_dump)(const NetlinkMessage& request);
  // Answers a request for one object, with one message at most.
  int (*get)(const HostView& view, const NetlinkCaller& caller, const NetlinkMessage& request, NetlinkDatagram& answer);
  // Reads from a dump request which objects are wanted.
  int (*read_filter)(const NetlinkCaller& caller, const NetlinkMessage& request, DumpFilter& filter);
  // Passes all items to `dump`. An error ends the dump after the items so far.
  int (*dump)(const HostView& view, std::uint16_t type, Dump& dump);
};

}  // namespace rnicsim::clock
