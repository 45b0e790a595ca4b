// SPDX-License-Identifier: Apache-2.0
// Several messages by one call: each is sent or received as by a call of its own.

#include <errno.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cstdint>

#include "sim/host/kernel/sockets/message_sockets.h"
#include "sim/host/kernel/sockets/simulated_sockets.h"
#include "sim/host/shim/next.h"
#include "sim/host/time/timeline.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(sendmmsg);
RNICSIM_NEXT(recvmmsg);

using namespace rnicsim;
using namespace rnicsim::clock;

namespace {

constexpr unsigned kMost = 1024;  // UIO_MAXIOV

// True: the real kernel's call would not do, because of headers or simulated time.
bool one_by_one(int fd) { return simulated_slot() != nullptr || find_message_socket(fd) || find_socket(fd); }

}  // namespace

RNICSIM_EXPORT int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  if (!one_by_one(fd)) return next_sendmmsg(fd, messages, count, flags);
  count = std::min(count, kMost);
  for (unsigned done = 0; done < count; ++done) {
    const ssize_t sent = ::sendmsg(fd, &messages[done].msg_hdr, flags);
    if (sent < 0) return done > 0 ? int(done) : -1;
    messages[done].msg_len = unsigned(sent);
  }
  return int(count);
}

// As on Linux, the timeout is checked only after each message.
RNICSIM_EXPORT int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  if (!one_by_one(fd)) return next_recvmmsg(fd, messages, count, flags, timeout);
  if (timeout != nullptr && !valid(*timeout)) {
    errno = EINVAL;
    return -1;
  }
  const abi::ThreadSlot* slot = simulated_slot();
  const bool limited = timeout != nullptr && slot != nullptr;
  const std::uint64_t deadline = limited ? after(slot->now, picoseconds(*timeout)) : abi::kForever;
  count = std::min(count, kMost);
  int each = flags & ~MSG_WAITFORONE;
  unsigned done = 0;
  while (done < count) {
    const ssize_t got = ::recvmsg(fd, &messages[done].msg_hdr, each);
    if (got < 0) break;
    messages[done++].msg_len = unsigned(got);
    if ((flags & MSG_WAITFORONE) != 0) each |= MSG_DONTWAIT;
    if (limited && slot->now >= deadline) break;
  }
  if (limited) *timeout = to_timespec(deadline > slot->now ? deadline - slot->now : 0);
  return done > 0 || count == 0 ? int(done) : -1;
}
