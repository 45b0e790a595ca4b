// SPDX-License-Identifier: Apache-2.0
// Receiving on a stream.
#include <sys/socket.h>

#include <cerrno>

#include "verbs/rsockets/stream.h"

namespace rnicsim::rsockets {

// Data that arrived before the end of the connection can still be read.
Answer Stream::receive(std::span<const iovec> into, int flags, AddressOut source) {
  if ((flags & MSG_OOB) != 0) return -EOPNOTSUPP;
  const std::lock_guard calls(receive_mutex_);
  Lock lock(mutex_);
  const bool waiting = waits(flags);
  if (const int error = ready_for_data(lock, waiting)) return -error;
  const auto wanted = std::uint32_t(std::min<std::size_t>(bytes_of(into), kMaxMessageValue));
  if (wanted == 0) return 0;
  Sink sink(into);
  const auto copy = [&](Piece piece) { sink.copy(endpoint_->receive_bytes() + piece.offset, piece.length); };
  std::uint32_t done = 0;
  int error = 0;
  // A message of 0 bytes is not the end of the stream.
  while (done == 0 || ((flags & MSG_WAITALL) != 0 && done < wanted)) {
    if (receive_ring_.empty()) {
      error = wait_until(lock, waiting, [&] { return can_receive(); });
      if (error != 0 || receive_ring_.empty()) break;
    }
    if ((flags & MSG_PEEK) != 0) {
      done = receive_ring_.peek(wanted, copy);
      break;
    }
    done += receive_ring_.read(wanted - done, receive_window_, copy);
    give_credits();
  }
  if (done == 0 && error == 0 && state_ == State::broken) error = ECONNRESET;
  if (done == 0 && error != 0) return -error;
  if (source.address != nullptr) put_address(*rdma_get_peer_addr(connection_.id()), source);
  return done;
}

}  // namespace rnicsim::rsockets
