// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/netlink/netlink_answers.h"

#include <errno.h>

#include "sim/host/kernel/netlink/netlink_protocol.h"
#include "sim/host/kernel/netlink/rdma_netlink.h"
#include "sim/host/kernel/netlink/rtnetlink.h"

namespace rnicsim::clock {
namespace {

const NetlinkProtocol* find_protocol(int protocol) {
  switch (protocol) {
    case NETLINK_ROUTE: return &kRouteNetlink;
    case NETLINK_RDMA: return &kRdmaNetlink;
    default: return nullptr;
  }
}

bool put_message(NetlinkDatagram& datagram, NetlinkSink& sink) {
  return datagram.empty() || sink.put(datagram.bytes());
}

// An error returns the request, if there is room and the program wants it (NETLINK_CAP_ACK is off).
bool acknowledge(const NetlinkCaller& caller, const NetlinkMessage& request, int error, NetlinkSink& sink) {
  NetlinkDatagram datagram;
  const auto write = [&](bool capped) {
    datagram.begin(NLMSG_ERROR, capped ? NLM_F_CAPPED : 0, request.header.nlmsg_seq, caller.port);
    datagram.put_header(nlmsgerr{-error, request.header});
    if (!capped) datagram.append(request.payload().data(), request.payload().size());
    return datagram.end();
  };
  const bool whole = error != 0 && !caller.caps_acks;
  if (!whole || !write(false)) write(true);
  return put_message(datagram, sink);
}

bool run_dump(const HostView& view, const NetlinkProtocol& protocol, const DumpState& state, NetlinkSink& sink) {
  Dump dump(state, sink);
  const int error = state.filter.nothing ? 0 : protocol.dump(view, state.type, dump);
  return dump.finish(error);
}

bool answer_message(const HostView& view, const NetlinkCaller& caller, const NetlinkMessage& request,
                    NetlinkSink& sink) {
  const NetlinkProtocol* protocol = find_protocol(caller.protocol);
  const bool is_request = (request.header.nlmsg_flags & NLM_F_REQUEST) != 0;
  int error = 0;
  if (protocol != nullptr && is_request && request.header.nlmsg_type >= NLMSG_MIN_TYPE) {
    if (protocol->is_dump(request)) {
      DumpState state{caller, request.header.nlmsg_type, request.header.nlmsg_seq, {}, 0};
      error = protocol->read_filter(caller, request, state.filter);
      // The dump itself acknowledges the request.
      if (error == 0) return run_dump(view, *protocol, state, sink);
    } else {
      NetlinkDatagram answer;
      error = protocol->get(view, caller, request, answer);
      if (error == 0 && !put_message(answer, sink)) return false;
    }
  }
  const bool wanted = error != 0 || (request.header.nlmsg_flags & NLM_F_ACK) != 0;
  return !wanted || acknowledge(caller, request, error, sink);
}

}  // namespace

bool has_netlink_protocol(int protocol) { return find_protocol(protocol) != nullptr; }

bool answer_netlink(const HostView& view, const NetlinkCaller& caller, NetlinkBytes sent, NetlinkSink& sink) {
  bool fits = true;
  while (const auto request = take_message(sent)) fits = answer_message(view, caller, *request, sink) && fits;
  return fits;
}

bool continue_dump(const HostView& view, const DumpMark& mark, NetlinkSink& sink) {
  const NetlinkProtocol* protocol = find_protocol(mark.state.caller.protocol);
  return protocol != nullptr && run_dump(view, *protocol, mark.state, sink);
}

}  // namespace rnicsim::clock
