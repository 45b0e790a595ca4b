// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/sockets/message_sockets.h"

#include "sim/host/kernel/sockets/datagrams.h"
#include "sim/host/kernel/sockets/netlink_socket.h"

namespace rnicsim::clock {

std::optional<KnownDescriptor> find_message_socket(int fd) {
  const auto descriptor = known(fd);
  return descriptor && (descriptor->netlink || descriptor->datagrams) ? descriptor : std::nullopt;
}

ssize_t send_whole_message(int fd, const KnownDescriptor& socket, const msghdr& message, int flags) {
  return socket.netlink ? send_netlink(fd, socket, message, flags) : send_datagram(fd, socket, message, flags);
}

ssize_t receive_whole_message(int fd, const KnownDescriptor& socket, msghdr& message, int flags) {
  return socket.netlink ? receive_netlink(fd, socket, message, flags) : receive_datagram(fd, socket, message, flags);
}

}  // namespace rnicsim::clock
