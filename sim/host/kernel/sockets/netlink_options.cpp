// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/sockets/netlink_options.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>

#include <algorithm>
#include <iterator>

#include "sim/host/kernel/sockets/refused_options.h"
#include "sim/host/shim/next.h"

RNICSIM_NEXT(setsockopt);
RNICSIM_NEXT(getsockopt);

namespace rnicsim::clock {
namespace {

// Options that are on or off. Those about events have no effect, because there are no events.
constexpr int kSwitches[] = {
    NETLINK_PKTINFO, NETLINK_BROADCAST_ERROR, NETLINK_NO_ENOBUFS,     NETLINK_LISTEN_ALL_NSID,
    NETLINK_CAP_ACK, NETLINK_EXT_ACK,         NETLINK_GET_STRICT_CHK,
};
bool is_switch(int name) { return std::ranges::find(kSwitches, name) != std::end(kSwitches); }

int fail(int error) {
  errno = error;
  return -1;
}

int set_switch(int fd, KnownDescriptor socket, int name, bool on) {
  std::uint32_t& options = socket.netlink->options;
  options = on ? options | 1u << name : options & ~(1u << name);
  return remember(fd, socket) ? 0 : fail(EBADF);
}

int set_of_netlink(int fd, const KnownDescriptor& socket, int name, const void* value, socklen_t length) {
  int number = 0;
  if (length < sizeof number) return fail(EINVAL);
  if (value == nullptr) return fail(EFAULT);
  memcpy(&number, value, sizeof number);
  if (is_switch(name)) return set_switch(fd, socket, name, number != 0);
  if (name == NETLINK_ADD_MEMBERSHIP || name == NETLINK_DROP_MEMBERSHIP) return number > 0 ? 0 : fail(EINVAL);
  return fail(ENOPROTOOPT);
}

int give_number(int number, void* value, socklen_t* length) {
  if (*length < sizeof number) return fail(EINVAL);
  memcpy(value, &number, sizeof number);
  *length = sizeof number;
  return 0;
}

}  // namespace

int set_netlink_option(int fd, const KnownDescriptor& socket, int level, int name, const void* value,
                       socklen_t length) {
  if (level == SOL_NETLINK) return set_of_netlink(fd, socket, name, value, length);
  if (level != SOL_SOCKET || is_refused(name)) return fail(ENOPROTOOPT);
  // The room for answers is the descriptor's send buffer, whose size stays.
  if (name == SO_SNDBUF || name == SO_SNDBUFFORCE || name == SO_RCVBUFFORCE) return 0;
  return next_setsockopt(fd, level, name, value, length);
}

int get_netlink_option(int fd, const KnownDescriptor& socket, int level, int name, void* value, socklen_t* length) {
  const KnownNetlink& netlink = *socket.netlink;
  if (level == SOL_NETLINK) return is_switch(name) ? give_number(netlink.has(name), value, length) : fail(ENOPROTOOPT);
  if (level != SOL_SOCKET) return fail(ENOPROTOOPT);
  switch (name) {
    case SO_DOMAIN: return give_number(AF_NETLINK, value, length);
    case SO_TYPE: return give_number(netlink.type, value, length);
    case SO_PROTOCOL: return give_number(netlink.protocol, value, length);
    case SO_PEERCRED: return fail(ENOPROTOOPT);
    default: return next_getsockopt(fd, level, name, value, length);
  }
}

}  // namespace rnicsim::clock
