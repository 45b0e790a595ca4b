// What a simulated host's kernel answers on netlink sockets: the bytes of a send in, datagrams out. Knows of no
// descriptor and no session.
#pragma once

#include "verbs/clock/netlink_dump.h"
#include "verbs/clock/network_devices.h"

namespace rnicsim::clock {

bool has_netlink_protocol(int protocol);

// What a program sent. False: some answer found no room.
bool answer_netlink(const HostView& view, const NetlinkCaller& caller, NetlinkBytes sent, NetlinkSink& sink);
// More of a dump, in the place of its mark.
bool continue_dump(const HostView& view, const DumpMark& mark, NetlinkSink& sink);

}  // namespace rnicsim::clock
