// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/vm/socket_ends.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>

#include "sim/os/throw_errno.h"

namespace rnicsim::sim {

SocketEnds make_socket_ends() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw_errno("socketpair");
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace rnicsim::sim
