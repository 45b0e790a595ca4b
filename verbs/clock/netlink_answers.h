// The simulated kernel's answers on netlink sockets: takes the bytes of a send, produces datagrams. Independent of
// descriptors and of the session.
#pragma once

#include "verbs/clock/netlink_dump.h"
#include "verbs/clock/network_devices.h"

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

bool has_netlink_protocol(int protocol);

// Answers the messages of one send. False: an answer found no room.
bool answer_netlink(const HostView& view, const NetlinkCaller& caller, NetlinkBytes sent, NetlinkSink& sink);
// Continues a dump whose mark was read from the queue.
bool continue_dump(const HostView& view, const DumpMark& mark, NetlinkSink& sink);

}  // namespace rnicsim::clock
