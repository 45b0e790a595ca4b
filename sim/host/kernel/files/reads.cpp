// SPDX-License-Identifier: Apache-2.0
// Reads from any descriptor that may block.

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "sim/host/kernel/files/descriptors.h"
#include "sim/host/kernel/files/event_descriptors.h"
#include "sim/host/kernel/files/known_descriptors.h"
#include "sim/host/kernel/files/port_counters.h"
#include "sim/host/kernel/files/random.h"
#include "sim/host/kernel/files/signal_descriptors.h"
#include "sim/host/kernel/sockets/message_sockets.h"
#include "sim/host/kernel/sockets/network.h"
#include "sim/host/kernel/sockets/simulated_sockets.h"
#include "sim/host/kernel/sockets/unix_sockets.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(read);
RNICSIM_NEXT(readv);
RNICSIM_NEXT(pread);
RNICSIM_NEXT(recv);
RNICSIM_NEXT(recvfrom);
RNICSIM_NEXT(recvmsg);

namespace rnicsim::clock {
namespace {

KnownDescriptor known_in_turn(int fd) {
  return simulated_slot() != nullptr ? known(fd).value_or(KnownDescriptor{}) : KnownDescriptor{};
}

// True: the read does not wait. It is one of 0 bytes, or of less than the 8 bytes of a counter (eventfd, timerfd),
// which the kernel refuses.
bool reads_at_once(int fd, std::size_t bytes) {
  return bytes == 0 || (bytes < sizeof(std::uint64_t) && has_no_type(fd));
}

// Receives a message into one buffer.
ssize_t receive_part(int fd, const KnownDescriptor& socket, void* buffer, size_t bytes, int flags) {
  iovec part{buffer, bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return receive_whole_message(fd, socket, message, flags);
}

// True: MSG_WAITALL asks to wait for all bytes, which may still be on their way in simulated time.
bool waits_for_all(int fd, size_t bytes, int flags) {
  const bool is_asked = (flags & (MSG_WAITALL | MSG_DONTWAIT | MSG_PEEK)) == MSG_WAITALL;
  return is_asked && bytes != 0 && simulated_slot() != nullptr && is_stream_socket(fd);
}

// Receives until `got` is `bytes`. Returns the result of the last receive: 0 at the end, -1 for an error.
ssize_t receive_up_to(int fd, void* buffer, size_t bytes, int flags, size_t& got) {
  ssize_t part = 1;
  while (got < bytes && part > 0) {
    if (!prepare(fd, POLLIN, false)) return -1;
    part = next_recv(fd, static_cast<char*>(buffer) + got, bytes - got, flags & ~MSG_WAITALL);
    if (part > 0) got += size_t(part);
  }
  return part;
}
ssize_t receive_all(int fd, void* buffer, size_t bytes, int flags) {
  size_t got = 0;
  const ssize_t last = receive_up_to(fd, buffer, bytes, flags, got);
  return got > 0 ? ssize_t(got) : settle_end(fd, bytes, last);
}

// Receives the rest of a message without control data, of which `got` bytes are there. An end or error is left for the
// next receive.
ssize_t receive_rest(int fd, const msghdr& message, size_t got, int flags) {
  size_t begin = 0;  // first byte of the part, counted in the message
  for (size_t i = 0; i < message.msg_iovlen && got >= begin; ++i) {
    const iovec& part = message.msg_iov[i];
    size_t held = std::min(got - begin, part.iov_len);
    got -= held;
    receive_up_to(fd, part.iov_base, part.iov_len, flags, held);
    got += held;
    begin += part.iov_len;
  }
  return ssize_t(got);
}

// Registers descriptors that came with a message.
void know_received(msghdr& message) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr; control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int received;
      memcpy(&received, CMSG_DATA(control) + i * sizeof received, sizeof received);
      know_inherited_socket(received);
      if (is_event_descriptor(received)) know_event(received);
    }
  }
}

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT ssize_t read(int fd, void* buffer, size_t bytes) {
  const KnownDescriptor descriptor = known_in_turn(fd);
  if (descriptor.is_random) {
    draw(buffer, bytes);
    return ssize_t(bytes);
  }
  if (descriptor.signals != 0) {
    iovec part{buffer, bytes};
    return read_signals(fd, descriptor.signals, {&part, 1});
  }
  if (const auto socket = find_message_socket(fd)) return bytes == 0 ? 0 : receive_part(fd, *socket, buffer, bytes, 0);
  if (descriptor.port_counter) refresh_port_counter(fd);
  // A timer that was set to a past time ends now.
  if (descriptor.timer != 0) sync(*simulated_slot());
  // (On Linux, too, recv() of 0 bytes waits for data.)
  if (!prepare(fd, POLLIN, reads_at_once(fd, bytes))) return -1;
  return settle_end(fd, bytes, next_read(fd, buffer, bytes));
}
RNICSIM_EXPORT ssize_t readv(int fd, const iovec* parts, int count) {
  const KnownDescriptor descriptor = known_in_turn(fd);
  if (descriptor.is_random) {
    for (int i = 0; i < count; ++i) draw(parts[i].iov_base, parts[i].iov_len);
    return ssize_t(bytes_of({parts, std::size_t(std::max(count, 0))}));
  }
  const std::size_t bytes = bytes_of({parts, std::size_t(std::max(count, 0))});
  if (const auto socket = find_message_socket(fd); socket && count <= IOV_MAX) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts);
    message.msg_iovlen = std::size_t(std::max(count, 0));
    return bytes == 0 ? 0 : receive_whole_message(fd, *socket, message, 0);
  }
  if (descriptor.port_counter) refresh_port_counter(fd);
  if (descriptor.signals != 0 && count >= 0 && count <= IOV_MAX)
    return read_signals(fd, descriptor.signals, {parts, std::size_t(count)});
  if (!prepare(fd, POLLIN, reads_at_once(fd, bytes))) return -1;
  return settle_end(fd, bytes, next_readv(fd, parts, count));
}

RNICSIM_EXPORT ssize_t pread(int fd, void* buffer, size_t bytes, off_t offset) {
  refresh_port_counter(fd, offset);
  return next_pread(fd, buffer, bytes, offset);
}
RNICSIM_EXPORT ssize_t pread64(int fd, void* buffer, size_t bytes, off64_t offset) {
  return ::pread(fd, buffer, bytes, offset);
}

RNICSIM_EXPORT ssize_t recv(int fd, void* buffer, size_t bytes, int flags) {
  if (const auto socket = find_message_socket(fd)) return receive_part(fd, *socket, buffer, bytes, flags);
  if (waits_for_all(fd, bytes, flags)) return receive_all(fd, buffer, bytes, flags);
  if (!prepare(fd, POLLIN, (flags & MSG_DONTWAIT) != 0)) return -1;
  return settle_end(fd, bytes, next_recv(fd, buffer, bytes, flags));
}
RNICSIM_EXPORT ssize_t recvfrom(int fd, void* buffer, size_t bytes, int flags, sockaddr* from, socklen_t* length) {
  if (const auto socket = find_message_socket(fd)) {
    iovec part{buffer, bytes};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_name = length != nullptr ? from : nullptr;
    message.msg_namelen = message.msg_name != nullptr ? *length : 0;
    const ssize_t result = receive_whole_message(fd, *socket, message, flags);
    if (result >= 0 && message.msg_name != nullptr) *length = message.msg_namelen;
    return result;
  }
  if (waits_for_all(fd, bytes, flags)) {
    if (from != nullptr && length != nullptr) *length = 0;
    return receive_all(fd, buffer, bytes, flags);
  }
  if (!prepare(fd, POLLIN, (flags & MSG_DONTWAIT) != 0)) return -1;
  return with_unix_name(from, length,
                        [&] { return settle_end(fd, bytes, next_recvfrom(fd, buffer, bytes, flags, from, length)); });
}
RNICSIM_EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  if (const auto socket = find_message_socket(fd)) return receive_whole_message(fd, *socket, *message, flags);
  if (!prepare(fd, POLLIN, (flags & MSG_DONTWAIT) != 0)) return -1;
  const socklen_t room = message->msg_namelen;
  const size_t bytes = bytes_of({message->msg_iov, message->msg_iovlen});
  // Control data end a message.
  const bool for_all = (message->msg_controllen == 0 || is_stream(fd)) && waits_for_all(fd, bytes, flags);
  const ssize_t result = settle_end(fd, bytes, next_recvmsg(fd, message, for_all ? flags & ~MSG_WAITALL : flags));
  if (result < 0) return result;
  hide_unix_address(static_cast<sockaddr*>(message->msg_name), room, &message->msg_namelen);
  know_received(*message);
  return for_all && result > 0 ? receive_rest(fd, *message, size_t(result), flags) : result;
}
