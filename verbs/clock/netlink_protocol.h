// One NETLINK_ protocol of a simulated host: the functions that answer its requests.
#pragma once

#include <cstdint>

#include "verbs/clock/netlink_dump.h"
#include "verbs/clock/network_devices.h"

namespace rnicsim::clock {

// What there is of this host behind a socket of one NETLINK_ protocol. Errors are errno's.
struct NetlinkProtocol {
  bool (*is_dump)(const NetlinkMessage& request);
  // Of one object; puts no more than one message.
  int (*get)(const HostView& view, const NetlinkCaller& caller, const NetlinkMessage& request, NetlinkDatagram& answer);
  // What of all it wants.
  int (*read_filter)(const NetlinkCaller& caller, const NetlinkMessage& request, DumpFilter& filter);
  // Gives the items. An error ends the dump behind them.
  int (*dump)(const HostView& view, std::uint16_t type, Dump& dump);
};

}  // namespace rnicsim::clock
