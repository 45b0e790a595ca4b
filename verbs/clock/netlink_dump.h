// A dump: the answer to a request for everything of a kind, in as many messages as it takes. As the kernel's, it goes
// on while its reader reads: what is to come stands in the queue as a mark, behind what came.
#pragma once

#include <cstdint>

#include "verbs/clock/netlink_message.h"

namespace rnicsim::clock {

// Who asks, through a socket of which protocol.
struct NetlinkCaller {
  int protocol = 0;        // NETLINK_
  std::uint32_t port = 0;  // the socket's own
  bool strict = false;     // NETLINK_GET_STRICT_CHK: what dumps are asked to leave out they leave out
  bool caps_acks = false;  // NETLINK_CAP_ACK
};

// Where answers go.
class NetlinkSink {
 public:
  // A datagram. False: there is no room for it.
  virtual bool put(NetlinkBytes datagram) = 0;

 protected:
  ~NetlinkSink() = default;
};

// What a dump is to have; 0: anything.
struct DumpFilter {
  std::uint8_t family = 0;    // AF_
  std::uint8_t protocol = 0;  // RTPROT_
  std::uint8_t type = 0;      // RTN_
  std::int32_t index = 0;     // of a device; of an RDMA device, 1 + its index
  std::uint32_t table = 0;    // RT_TABLE_
  bool nothing = false;

  bool narrows() const { return protocol != 0 || type != 0 || index != 0 || table != 0; }
};

// All that a dump is, so that it can go on from a copy.
struct DumpState {
  NetlinkCaller caller;
  std::uint16_t type = 0;  // of the request
  std::uint32_t sequence = 0;
  DumpFilter filter;
  std::uint32_t position = 0;  // items that went already
};

// In a queue, in the place of what is to come: no message is as short as it says.
struct DumpMark {
  nlmsghdr head{};
  DumpState state;
};
std::optional<DumpMark> read_mark(NetlinkBytes datagram);

// One step of a dump: whoever knows the items gives all of them, in the same order each time, and a datagram's go.
class Dump {
 public:
  Dump(const DumpState& state, NetlinkSink& sink) : state_(state), sink_(sink) {}
  Dump(const Dump&) = delete;
  Dump& operator=(const Dump&) = delete;

  const DumpFilter& filter() const { return state_.filter; }
  // A message; `fill` puts what is behind the netlink header.
  template <class Fill>
  void item(std::uint16_t type, Fill fill) {
    if (full_ || seen_++ < state_.position) return;
    const int filtered = state_.filter.narrows() ? NLM_F_DUMP_FILTERED : 0;
    datagram_.begin(type, std::uint16_t(NLM_F_MULTI | filtered), state_.sequence, state_.caller.port);
    fill(datagram_);
    full_ = !datagram_.end();
    if (!full_) ++held_;
  }
  // After the last item: the end, with an error or 0; or the mark. False: there was no room.
  bool finish(int error = 0);

 private:
  DumpState state_;
  NetlinkSink& sink_;
  NetlinkDatagram datagram_;
  std::uint32_t seen_ = 0;  // items
  std::uint32_t held_ = 0;  // of them in `datagram_`
  bool full_ = false;       // the rest goes another time
};

}  // namespace rnicsim::clock
