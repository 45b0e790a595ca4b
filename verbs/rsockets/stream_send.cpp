// SPDX-License-Identifier: Apache-2.0
// Sending on a stream, shutdown and close.
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "verbs/rsockets/keepalive.h"
#include "verbs/rsockets/stream.h"

namespace rnicsim::rsockets {

int Stream::may_send() const {
  if (writable_) return 0;
  return shut_for_sending_ ? EPIPE : ECONNRESET;
}

int Stream::wait_to_post(Lock& lock, bool waits, bool room) {
  const auto ready = [&] { return (room ? can_send() : can_post()) || !writable_; };
  if (!ready()) {
    if (const int error = wait_until(lock, waits, ready)) return error;
  }
  return may_send();
}

// Posts target.length bytes with `message`. Uses one place of the send queue and that many bytes of the send ring.
// message.value must be the length, except for a mapping's entry: the completion releases as many bytes.
void Stream::post_bytes(Source& source, Message message, bool immediate, const Extent& target) {
  --send_places_;
  const std::uint32_t length = target.length;
  if (length <= sizes_.inline_bytes) {
    const std::byte* bytes = source.next();
    if (source.contiguous() < length) {
      scratch_.resize(length);
      source.copy(scratch_.data(), length);
      bytes = scratch_.data();
    } else {
      source.skip(length);
    }
    send_ring_.count(length);
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes), length, 0};
    return post(message, immediate, {&piece, 1}, true, target);
  }
  const std::array<Piece, 2> places = send_ring_.take(length);
  std::array<ibv_sge, 2> pieces{};
  std::size_t count = 0;
  for (const Piece& place : places) {
    if (place.length == 0) continue;
    std::byte* bytes = endpoint_->send_bytes() + place.offset;
    source.copy(bytes, place.length);
    pieces[count++] = endpoint_->sge(bytes, place.length);
  }
  post(message, immediate, std::span(pieces).first(count), false, target);
}

Answer Stream::send(std::span<const iovec> from, int flags, const sockaddr* destination, socklen_t) {
  if (destination != nullptr) return -EISCONN;
  if ((flags & MSG_OOB) != 0) return -EOPNOTSUPP;
  const std::lock_guard calls(send_mutex_);
  Lock lock(mutex_);
  const bool waiting = waits(flags);
  if (const int error = ready_for_data(lock, waiting)) return -error;
  int error = may_send();
  if (error == 0) error = tell_mappings(lock, waiting);
  const std::size_t wanted = bytes_of(from);
  std::size_t done = 0;
  Source source(from);
  Overlap overlap;
  while (error == 0 && done < wanted) {
    error = wait_to_post(lock, waiting, true);
    if (error != 0) break;
    const std::uint32_t length = std::min({overlap.next(wanted - done), send_ring_.available(), targets_.room()});
    window_.sent();
    post_bytes(source, {Op::data, length}, true, targets_.take(length));
    done += length;
  }
  return sent_or(done, error);
}

Answer Stream::shutdown(int how) {
  Lock lock(mutex_);
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return -EINVAL;
  if (state_ == State::listening) return 0;
  if (!was_connected()) return -ENOTCONN;
  if (how == SHUT_WR && shut_for_sending_) return 0;
  if (state_ == State::connected) {
    if (how != SHUT_RD) {
      writable_ = false;
      shut_for_sending_ = true;
    }
    const bool peer_may_send = readable_ && how == SHUT_WR;
    if (how != SHUT_WR) readable_ = false;
    if (writable_) return 0;
    const auto stopped = [&] { return state_ != State::connected; };
    if (const int error = wait_until(lock, true, [&] { return controls_.available() || stopped(); })) return -error;
    if (!stopped()) {
      controls_.take();
      post(control_message(peer_may_send ? Control::shutdown : Control::disconnect), true, {}, false, {});
      if (const int error = wait_until(lock, true, [&] { return sends_done() || stopped(); })) return -error;
    }
  }
  if (state_ == State::disconnected) {
    endpoint_->stop();
    waiters_.wake_others();
  }
  return 0;
}

void Stream::close() {
  const SocketRef self = shared_from_this();
  Keepalive::service().remove(*this);
  bool connected;
  {
    const Lock lock(mutex_);
    connected = state_ == State::connected;
  }
  // shutdown() is repeated after a signal.
  while (connected && shutdown(SHUT_RDWR) == -EINTR) {}
  const Lock lock(mutex_);
  readable_ = writable_ = false;
  if (state_ == State::connected) state_ = State::disconnected;
  waiters_.wake_all();
}

void Stream::send_keepalive() {
  const Lock lock(mutex_);
  if (state_ != State::connected || !controls_.available()) return;
  controls_.take();
  post(control_message(Control::keepalive), false, {}, false, {});
}

}  // namespace rnicsim::rsockets
