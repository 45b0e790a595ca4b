// What a simulated host's kernel answers on netlink sockets: the bytes of a send in, datagrams out. Knows of no
// descriptor and no session.
#pragma once

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

bool has_netlink_protocol(int protocol);

// What a program sent. False: some answer found no room.
bool answer_netlink(const HostView& view, const NetlinkCaller& caller, NetlinkBytes sent, NetlinkSink& sink);
// More of a dump, in the place of its mark.
bool continue_dump(const HostView& view, const DumpMark& mark, NetlinkSink& sink);

}  // namespace rnicsim::clock
