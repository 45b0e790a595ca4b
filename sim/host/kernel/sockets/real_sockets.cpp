// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/sockets/real_sockets.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim/host/kernel/sockets/socket_options.h"
#include "sim/host/shim/next.h"

RNICSIM_NEXT(socket);
RNICSIM_NEXT(close);
RNICSIM_NEXT(dup3);

namespace rnicsim::clock {

int make_real(int fd, const KnownDescriptor& socket) {
  const int flags = (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0 ? SOCK_NONBLOCK : 0;
  const int real = next_socket(socket.family, flags | (socket.datagrams ? SOCK_DGRAM : SOCK_STREAM), 0);
  if (real < 0) return -1;
  copy_options(fd, real);
  next_dup3(real, fd, (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
  next_close(real);
  forget(fd);
  return 0;
}

}  // namespace rnicsim::clock
