// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/transactor/qtest.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "sim/guest/transactor/guest_port.h"
#include "sim/guest/transactor/path_socket.h"

namespace rnicsim::sim {
namespace {

constexpr std::size_t kMostOutgoing = 1 << 20;  // above this limit QEMU does not read its socket

}  // namespace

void Qtest::interrupt(std::uint64_t address, std::uint32_t data) {
  if (!connected()) return;
  if (outgoing_.size() >= kMostOutgoing) return lose("QEMU accepts no more commands at its -qtest socket");
  outgoing_ += fmt::format("writel {:#x} {:#x}\n", address, data);
  flush();
}

bool Qtest::connected() {
  if (socket_) return true;
  std::string why;
  if (path_.empty())
    why = "the virtual machine has no --qtest SOCKET";
  else if (socket_ = connect_to_path(path_); !socket_)
    why = fmt::format("{}: {}", path_, std::strerror(errno));
  if (!socket_ && !std::exchange(told_, true)) port_.complain(fmt::format("interrupts are lost: {}", why));
  if (socket_) told_ = false;
  return bool(socket_);
}

// Not POLLIN: QEMU answers each interrupt, and a wake-up for the answer would cost as much as the interrupt. serve()
// reads the answers at the next turn.
void Qtest::watch(std::vector<pollfd>& watched) const {
  if (socket_) watched.push_back({socket_.get(), short(outgoing_.empty() ? 0 : POLLOUT), 0});
}

// QEMU answers each command with a line; only a line that is not OK is reported.
void Qtest::serve() {
  if (!socket_) return;
  char text[512];
  const ssize_t came = ::recv(socket_.get(), text, sizeof text, MSG_DONTWAIT);
  if (came == 0) return lose("QEMU closed its -qtest socket");
  if (came < 0 && errno != EAGAIN && errno != EINTR) return lose(std::strerror(errno));
  if (came > 0) incoming_.append(text, std::size_t(came));
  for (std::size_t end; (end = incoming_.find('\n')) != incoming_.npos; incoming_.erase(0, end + 1))
    if (incoming_.compare(0, 2, "OK") != 0)
      port_.complain(fmt::format("QEMU's answer to an interrupt: {}", incoming_.substr(0, end)));
  if (incoming_.size() > sizeof text) return lose("QEMU's answers do not end");
  flush();
}

void Qtest::flush() {
  while (!outgoing_.empty()) {
    const ssize_t sent = ::send(socket_.get(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (sent < 0) return lose(std::strerror(errno));
    outgoing_.erase(0, std::size_t(sent));
  }
}

void Qtest::lose(const std::string& why) {
  socket_.reset();
  outgoing_.clear();
  incoming_.clear();
  port_.complain(fmt::format("-qtest socket: {}", why));
}

}  // namespace rnicsim::sim
