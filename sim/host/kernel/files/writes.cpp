// SPDX-License-Identifier: Apache-2.0
// Writes that may block. A descriptor that blocks takes all bytes of a write, in simulated time: bytes without room are
// written in pieces, with a wait before each.

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>

#include "sim/host/kernel/files/descriptors.h"
#include "sim/host/kernel/files/event_descriptors.h"
#include "sim/host/kernel/sockets/message_sockets.h"
#include "sim/host/kernel/sockets/simulated_sockets.h"
#include "sim/host/kernel/sockets/unix_sockets.h"
#include "sim/host/shim/next.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(write);
RNICSIM_NEXT(writev);
RNICSIM_NEXT(sendmsg);

namespace rnicsim::clock {
namespace {

// The bytes of several parts that are still to be written.
class Remainder {
 public:
  explicit Remainder(std::span<const iovec> parts) : parts_(parts) { skip_empty(); }
  bool empty() const { return parts_.empty(); }
  // The next piece, of at most `most` bytes.
  std::span<iovec> next(std::size_t most) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < parts_.size() && count < piece_.size() && most > 0; ++i) {
      const std::size_t begin = i == 0 ? used_ : 0;
      const std::size_t bytes = std::min(parts_[i].iov_len - begin, most);
      piece_[count++] = {static_cast<char*>(parts_[i].iov_base) + begin, bytes};
      most -= bytes;
    }
    return {piece_.data(), count};
  }
  void advance(std::size_t bytes) {
    used_ += bytes;
    while (!parts_.empty() && used_ >= parts_[0].iov_len) {
      used_ -= parts_[0].iov_len;
      parts_ = parts_.subspan(1);
    }
    skip_empty();
  }

 private:
  void skip_empty() {
    while (!parts_.empty() && parts_[0].iov_len == 0) parts_ = parts_.subspan(1);
  }

  std::span<const iovec> parts_;
  std::size_t used_ = 0;  // bytes of the first part that are written
  std::array<iovec, 16> piece_{};
};

// Writes in pieces to a descriptor that is ready; `write` writes a piece, and does not block.
template <class Write>
ssize_t write_pieces(int fd, std::span<const iovec> parts, std::size_t most, Write write) {
  Remainder rest(parts);
  std::size_t done = 0;
  for (;;) {
    const ssize_t part = settle_write(fd, write(rest.next(most)));
    if (part < 0 && errno != EAGAIN && errno != EINTR) break;
    if (part > 0) {
      done += std::size_t(part);
      rest.advance(std::size_t(part));
    }
    if (rest.empty() || !wait_ready(*simulated_slot(), fd, POLLOUT)) break;
  }
  return done > 0 ? ssize_t(done) : -1;
}

// Sends a message in pieces, on a socket that may take a part of it.
ssize_t send_pieces(int fd, const msghdr& message, int flags) {
  msghdr piece = message;
  return write_pieces(fd, {message.msg_iov, message.msg_iovlen}, SSIZE_MAX, [&](std::span<iovec> parts) {
    piece.msg_iov = parts.data();
    piece.msg_iovlen = parts.size();
    const ssize_t sent = next_sendmsg(fd, &piece, flags | MSG_DONTWAIT);
    if (sent > 0) piece.msg_controllen = 0;  // control data went with the first piece
    return sent;
  });
}

// True: the call waits until all its bytes have room.
bool waits_for_room(int fd, std::size_t bytes) { return simulated_slot() != nullptr && bytes != 0 && blocks(fd); }

bool prepare_write(int fd, bool dont_wait, int flags) {
  if (prepare(fd, POLLOUT, dont_wait)) return true;
  if (errno != EPIPE || (flags & MSG_NOSIGNAL) != 0) return false;
  ::raise(SIGPIPE);
  errno = EPIPE;
  return false;
}

// After a reset the first write fails with ECONNRESET and raises no signal; later writes fail with EPIPE.
ssize_t fail_to_send(int fd, int flags) {
  const int error = take_error(fd);
  if (error == 0 && (flags & MSG_NOSIGNAL) == 0) ::raise(SIGPIPE);
  errno = error != 0 ? error : EPIPE;
  return -1;
}

// Sends on a TCP socket of the simulated network.
ssize_t send_on_stream(int fd, msghdr message, int flags) {
  message.msg_name = nullptr;  // a connection has its peer
  message.msg_namelen = 0;
  const std::size_t bytes = bytes_of({message.msg_iov, message.msg_iovlen});
  const bool dont_wait = (flags & MSG_DONTWAIT) != 0 || bytes == 0;
  if (!prepare_write(fd, dont_wait, flags)) return -1;
  const int quiet = flags | MSG_NOSIGNAL;
  const ssize_t sent = !dont_wait && waits_for_room(fd, bytes) ? send_pieces(fd, message, quiet)
                                                               : settle_write(fd, next_sendmsg(fd, &message, quiet));
  return sent < 0 && errno == EPIPE ? fail_to_send(fd, flags) : sent;
}

ssize_t send_message(int fd, const msghdr& message, int flags) {
  if (is_stream(fd)) return send_on_stream(fd, message, flags);
  if (const auto socket = find_message_socket(fd)) return send_whole_message(fd, *socket, message, flags);
  const std::size_t bytes = bytes_of({message.msg_iov, message.msg_iovlen});
  const bool in_pieces = is_stream_socket(fd);
  const bool dont_wait = (flags & MSG_DONTWAIT) != 0 || (in_pieces && bytes == 0);
  if (!prepare_write(fd, dont_wait, flags)) return -1;
  if (in_pieces && !dont_wait && waits_for_room(fd, bytes)) return send_pieces(fd, message, flags);
  return next_sendmsg(fd, &message, flags);
}

// `whole` writes all parts at once.
template <class Whole>
ssize_t write_parts(int fd, std::span<iovec> parts, Whole whole) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  if (is_stream(fd)) return send_on_stream(fd, message, 0);
  if (const auto socket = find_message_socket(fd)) return send_whole_message(fd, *socket, message, 0);
  if (is_of_event(fd)) {
    errno = EINVAL;
    return -1;
  }
  const std::size_t bytes = bytes_of(parts);
  if (!prepare_write(fd, bytes == 0, 0)) return -1;
  if (!waits_for_room(fd, bytes)) return whole();
  if (is_stream_socket(fd)) return send_pieces(fd, message, 0);
  // A pipe that is ready has room for PIPE_BUF bytes; larger writes need not stay together.
  if (bytes <= PIPE_BUF || !is_pipe(fd)) return whole();
  return write_pieces(fd, parts, PIPE_BUF,
                      [&](std::span<iovec> piece) { return next_writev(fd, piece.data(), int(piece.size())); });
}

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim::clock;

RNICSIM_EXPORT ssize_t write(int fd, const void* buffer, size_t bytes) {
  iovec part{const_cast<void*>(buffer), bytes};
  return write_parts(fd, {&part, 1}, [&] { return next_write(fd, buffer, bytes); });
}
RNICSIM_EXPORT ssize_t writev(int fd, const iovec* parts, int count) {
  if (count < 0 || count > IOV_MAX) return next_writev(fd, parts, count);
  return write_parts(fd, {const_cast<iovec*>(parts), std::size_t(count)},
                     [&] { return next_writev(fd, parts, count); });
}
RNICSIM_EXPORT ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  const UnixAddress leads(static_cast<const sockaddr*>(message->msg_name), message->msg_namelen, Last::followed);
  msghdr led = *message;
  led.msg_name = const_cast<sockaddr*>(leads.get());
  led.msg_namelen = leads.length();
  return send_message(fd, led, flags);
}
RNICSIM_EXPORT ssize_t sendto(int fd, const void* buffer, size_t bytes, int flags, const sockaddr* to,
                              socklen_t length) {
  iovec part{const_cast<void*>(buffer), bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_name = const_cast<sockaddr*>(to);
  message.msg_namelen = length;
  return ::sendmsg(fd, &message, flags);
}
RNICSIM_EXPORT ssize_t send(int fd, const void* buffer, size_t bytes, int flags) {
  return ::sendto(fd, buffer, bytes, flags, nullptr, 0);
}
