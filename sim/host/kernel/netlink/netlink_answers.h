// SPDX-License-Identifier: Apache-2.0
// The simulated kernel's answers on netlink sockets: takes the bytes of a send, produces datagrams. Independent of
// descriptors and of the session.
#pragma once

#include "sim/host/kernel/netlink/netlink_dump.h"
#include "sim/host/kernel/netlink/network_devices.h"

namespace rnicsim::clock {

bool has_netlink_protocol(int protocol);

// Answers the messages of one send. False: an answer found no room.
bool answer_netlink(const HostView& view, const NetlinkCaller& caller, NetlinkBytes sent, NetlinkSink& sink);
// Continues a dump whose mark was read from the queue.
bool continue_dump(const HostView& view, const DumpMark& mark, NetlinkSink& sink);

}  // namespace rnicsim::clock
