// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/wire/unix_line.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sim/config/config_error.h"
#include "sim/guest/wire/transient_error.h"

namespace rnicsim::sim {
namespace {

constexpr std::chrono::milliseconds kBetweenAttempts{100};
// Limit of the bytes queued for a peer that does not read.
constexpr std::size_t kMostOutgoing = 16 << 20;
constexpr short kHungUp = POLLRDHUP | POLLHUP;
// Reads in one receive(): a peer that sends much must not stop the simulation.
constexpr int kMostReads = 4;

int process_of(const Descriptor& socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length);
  return peer.pid;
}

}  // namespace

UnixLine::UnixLine(const std::string& path, Role role, WireNotices& notices) : path_(path), notices_(notices) {
  if (role == Role::listen) {
    listener_.emplace(path);
  } else if (path.size() >= sizeof sockaddr_un::sun_path) {
    throw ConfigError(fmt::format("'{}': a socket's path has 1 to 107 bytes", path));
  }
}

void UnixLine::watch(std::vector<pollfd>& watched, bool hears) const {
  if (listener_) watched.push_back({listener_->descriptor(), POLLIN, 0});
  const int events = (hears ? POLLIN : 0) | (outgoing_.empty() ? 0 : POLLOUT);
  if (socket_ && events != 0) watched.push_back({socket_.get(), static_cast<short>(events), 0});
}

void UnixLine::work() {
  if (listener_) {
    // The next peer is accepted after all bytes of the former one have been read.
    if (has_hung_up()) return flush();
    if (auto socket = listener_->accept()) take_connection(std::move(socket));
  } else if (!socket_ && Clock::now() >= next_attempt_) {
    next_attempt_ = Clock::now() + kBetweenAttempts;
    if (auto socket = connect_to_path(path_)) take_connection(std::move(socket));
  }
  flush();
}

bool UnixLine::has_hung_up() const {
  pollfd watched{socket_.get(), kHungUp, 0};
  return socket_ && ::poll(&watched, 1, 0) > 0;
}

void UnixLine::take_connection(Descriptor socket) {
  if (socket_)
    return notices_.tell(
        WireTrouble::second,
        fmt::format("a second peer (process {}) tried to connect to {}: it is refused, because a peer is connected",
                    process_of(socket), path_));
  socket_ = std::move(socket);
  incoming_ = {};
  outgoing_.clear();
  ++connections_;
}

void UnixLine::receive(const Take& take) {
  std::array<std::byte, 65536> buffer;
  for (int reads = 0; reads < kMostReads && socket_; ++reads) {
    const ssize_t came = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (came < 0 && is_transient(errno)) return;
    if (came <= 0) {
      if (incoming_.is_within_frame())
        return hang_up(WireTrouble::cut_off, "the peer closed the connection within a frame");
      return hang_up(WireTrouble::gone, "the peer closed the connection");
    }
    incoming_.add(std::span(buffer).first(static_cast<std::size_t>(came)));
    while (const auto frame = incoming_.next()) {
      if (frame->empty())
        notices_.tell(WireTrouble::empty_frame, "the peer sent a frame of length 0, which is dropped");
      else
        take(*frame);
    }
    if (incoming_.broken())
      return hang_up(WireTrouble::too_long,
                     fmt::format("the peer announced a frame of {} bytes, more than {}: its connection is closed",
                                 *incoming_.broken(), StreamFraming::kMostBytes));
  }
}

bool UnixLine::send(std::span<const std::byte> frame) {
  if (!socket_ || outgoing_.size() + frame.size() > kMostOutgoing) return false;
  StreamFraming::append(outgoing_, frame);
  flush();
  return true;
}

// A later read reports the error.
void UnixLine::flush() {
  std::size_t gone = 0;
  while (socket_ && gone < outgoing_.size()) {
    const ssize_t sent =
        ::send(socket_.get(), outgoing_.data() + gone, outgoing_.size() - gone, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) break;
    gone += static_cast<std::size_t>(sent);
  }
  outgoing_.erase(outgoing_.begin(), outgoing_.begin() + static_cast<std::ptrdiff_t>(gone));
}

void UnixLine::hang_up(WireTrouble kind, const std::string& why) {
  socket_.reset();
  incoming_ = {};
  outgoing_.clear();
  notices_.tell(kind, why + (listener_ ? "; waiting for the next one" : "; connecting again"));
}

}  // namespace rnicsim::sim
