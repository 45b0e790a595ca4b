// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/transactor/guest_connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rnicsim::sim {
namespace {

// Above this limit no further request of the client is read.
constexpr std::size_t kMostOutgoing = 4 << 20;

[[noreturn]] void lost(int error) {
  if (error == ECONNRESET || error == EPIPE) throw ConnectionLost("the client closed the connection");
  throw ConnectionLost(fmt::format("its socket: {}", std::strerror(error)));
}

bool comes_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

short GuestConnection::events() const {
  const bool hears = outgoing_.size() < kMostOutgoing;
  return static_cast<short>((hears ? POLLIN : 0) | (outgoing_.empty() ? 0 : POLLOUT));
}

std::optional<GuestMessage> GuestConnection::receive() {
  if (outgoing_.size() >= kMostOutgoing) return std::nullopt;
  constexpr auto kHeader = GuestMessage::kHeaderBytes;
  if (!header_read_) {
    if (!fill(std::span(incoming_.header).subspan(come_))) return std::nullopt;
    if (come_ < kHeader) return std::nullopt;
    incoming_.body.resize(body_bytes_(incoming_.header));
    header_read_ = true;
  }
  const auto missing = std::span(incoming_.body).subspan(come_ - kHeader);
  if (!missing.empty() && !fill(missing)) return std::nullopt;
  if (come_ < kHeader + incoming_.body.size()) return std::nullopt;
  come_ = 0;
  header_read_ = false;
  return std::exchange(incoming_, {});
}

// Reads the bytes that have arrived; false: none. Descriptors arrive with the first byte of their message. A read ends
// at the end of a message at the latest.
bool GuestConnection::fill(std::span<std::byte> bytes) {
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t came = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (came < 0) {
    if (comes_later(errno)) return false;
    lost(errno);
  }
  keep_descriptors(message);
  if (came == 0)
    throw ConnectionLost(come_ == 0 ? "the client closed the connection"
                                    : "the client closed the connection in the middle of a message");
  come_ += static_cast<std::size_t>(came);
  return true;
}

void GuestConnection::keep_descriptors(const msghdr& message) {
  for (auto* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(const_cast<msghdr*>(&message), part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t i = 0; i < (part->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof descriptor);
      incoming_.descriptors.emplace_back(descriptor);
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0 || incoming_.descriptors.size() > kMostDescriptors)
    throw ConnectionLost(
        fmt::format("the client sent more than {} descriptors with a message, or this process has too many open files",
                    kMostDescriptors));
}

void GuestConnection::send(std::span<const std::byte> message) {
  outgoing_.insert(outgoing_.end(), message.begin(), message.end());
  flush();
}

void GuestConnection::flush() {
  std::size_t gone = 0;
  while (gone < outgoing_.size()) {
    const ssize_t sent =
        ::send(socket_.get(), outgoing_.data() + gone, outgoing_.size() - gone, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && comes_later(errno)) break;
    if (sent < 0) lost(errno);
    gone += static_cast<std::size_t>(sent);
  }
  outgoing_.erase(outgoing_.begin(), outgoing_.begin() + static_cast<std::ptrdiff_t>(gone));
}

bool GuestConnection::await(std::chrono::steady_clock::time_point deadline) const {
  using namespace std::chrono;
  for (;;) {
    const auto left = ceil<milliseconds>(deadline - steady_clock::now()).count();
    pollfd watched{socket_.get(), events(), 0};
    const int ready = ::poll(&watched, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready > 0) return true;
    if (left <= 0) return false;
  }
}

}  // namespace rnicsim::sim
