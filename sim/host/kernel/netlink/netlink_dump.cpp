// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/netlink/netlink_dump.h"

namespace rnicsim::clock {

std::optional<DumpMark> read_mark(NetlinkBytes datagram) {
  const auto mark = read_value<DumpMark>(datagram);
  return mark && mark->head.nlmsg_len == 0 && datagram.size() == sizeof *mark ? mark : std::nullopt;
}

bool Dump::finish(int error) {
  item(NLMSG_DONE, [&](NetlinkDatagram& message) { message.put_header(-error); });
  if (full_ && held_ == 0) return false;  // no item fits: the dump would never continue
  if (!sink_.put(datagram_.bytes())) return false;
  if (!full_) return true;
  state_.position += held_;
  const DumpMark mark{{}, state_};
  return sink_.put(std::as_bytes(std::span(&mark, 1)));
}

}  // namespace rnicsim::clock
