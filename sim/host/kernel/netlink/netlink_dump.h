// SPDX-License-Identifier: Apache-2.0
// A dump answers a request for all objects of a kind with as many messages as needed. As the kernel's, a dump continues
// while the program reads: a mark at the end of the queue stands for the messages to come.
#pragma once

#include <cstdint>

#include "sim/host/kernel/netlink/netlink_message.h"

namespace rnicsim::clock {

// The socket that a request came from.
struct NetlinkCaller {
  int protocol = 0;        // NETLINK_
  std::uint32_t port = 0;  // port of the socket
  bool strict = false;     // NETLINK_GET_STRICT_CHK: dumps obey the request's filter
  bool caps_acks = false;  // NETLINK_CAP_ACK
};

// Receives the answers.
class NetlinkSink {
 public:
  // Takes a datagram. False: no room.
  virtual bool put(NetlinkBytes datagram) = 0;

 protected:
  ~NetlinkSink() = default;
};

// Objects that a dump selects; a member of 0 selects all.
struct DumpFilter {
  std::uint8_t family = 0;    // AF_
  std::uint8_t protocol = 0;  // RTPROT_
  std::uint8_t type = 0;      // RTN_
  std::int32_t index = 0;     // index of a device; RDMA: 1 + index of the RDMA device
  std::uint32_t table = 0;    // RT_TABLE_
  bool nothing = false;

  bool narrows() const { return protocol != 0 || type != 0 || index != 0 || table != 0; }
};

// The whole state of a dump: a dump continues from a copy.
struct DumpState {
  NetlinkCaller caller;
  std::uint16_t type = 0;  // message type of the request
  std::uint32_t sequence = 0;
  DumpFilter filter;
  std::uint32_t position = 0;  // items sent so far
};

// Stands in a queue for the messages to come. Its nlmsg_len is 0, which no real message has.
struct DumpMark {
  nlmsghdr head{};
  DumpState state;
};
std::optional<DumpMark> read_mark(NetlinkBytes datagram);

// One step of a dump. The caller passes all items, in the same order at each step; those that fit into one datagram are
// sent.
class Dump {
 public:
  Dump(const DumpState& state, NetlinkSink& sink) : state_(state), sink_(sink) {}
  Dump(const Dump&) = delete;
  Dump& operator=(const Dump&) = delete;

  const DumpFilter& filter() const { return state_.filter; }
  // Passes an item as a message; `fill` writes the part behind the netlink header.
  template <class Fill>
  void item(std::uint16_t type, Fill fill) {
    if (full_ || seen_++ < state_.position) return;
    const int filtered = state_.filter.narrows() ? NLM_F_DUMP_FILTERED : 0;
    datagram_.begin(type, std::uint16_t(NLM_F_MULTI | filtered), state_.sequence, state_.caller.port);
    fill(datagram_);
    full_ = !datagram_.end();
    if (!full_) ++held_;
  }
  // After the last item: writes the end with an error or 0, or the mark. False: no room.
  bool finish(int error = 0);

 private:
  DumpState state_;
  NetlinkSink& sink_;
  NetlinkDatagram datagram_;
  std::uint32_t seen_ = 0;  // items passed
  std::uint32_t held_ = 0;  // items in `datagram_`
  bool full_ = false;       // the other items follow in a later step
};

}  // namespace rnicsim::clock
