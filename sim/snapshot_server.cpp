// SPDX-License-Identifier: Apache-2.0
#include "sim/snapshot_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "sim/os/local_socket.h"

namespace rnicsim::sim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostViewers = 8;
// A request within this time after the last snapshot gets the same snapshot again.
constexpr std::chrono::milliseconds kLeastGap{50};
// Viewers are served at most once in this time: a guest's loop calls serve() for each access to a register, and one
// accept() costs as much as the access.
constexpr std::chrono::milliseconds kServeGap{10};

Descriptor listen_at(const std::string& name) {
  const auto named = abstract_address(name);
  Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!named || !listener || ::bind(listener.get(), named->get(), named->bytes) != 0 ||
      ::listen(listener.get(), int(kMostViewers)) != 0)
    return {};
  return listener;
}

bool is_for_later() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

std::string snapshot_socket(pid_t process) { return fmt::format("rnicsim-top-{}-{}", ::geteuid(), process); }

SnapshotServer::SnapshotServer(const System& system, std::function<void(Snapshot&)> complete)
    : system_(system), complete_(std::move(complete)), listener_(listen_at(snapshot_socket(::getpid()))) {}

void SnapshotServer::serve() {
  if (!listener_) return;
  const auto now = Clock::now();
  if (now - served_ < kServeGap) return;
  served_ = now;
  accept_viewers();
  std::erase_if(viewers_, [this](Viewer& viewer) { return !hear(viewer) || !answer(viewer); });
}

void SnapshotServer::accept_viewers() {
  for (std::size_t accepted = 0; accepted < kMostViewers; ++accepted) {
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    if (!is_own_user(peer_of(socket.get()))) continue;
    if (viewers_.size() == kMostViewers) viewers_.erase(std::ranges::min_element(viewers_, {}, &Viewer::heard));
    viewers_.push_back({std::move(socket), {}, {}, Clock::now(), false});
  }
}

// No request is read from a viewer that has not taken its last answer.
bool SnapshotServer::hear(Viewer& viewer) {
  if (viewer.wants || !viewer.answer.empty()) return true;
  std::array<char, 2 * sizeof kSnapshotRequest> bytes{};
  const ssize_t got = ::recv(viewer.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got <= 0) return got < 0 && is_for_later();
  viewer.request.append(bytes.data(), std::size_t(got));
  viewer.heard = Clock::now();
  const std::string_view wanted = kSnapshotRequest;
  if (!wanted.starts_with(viewer.request)) return false;
  viewer.wants = viewer.request == wanted;
  return true;
}

bool SnapshotServer::answer(Viewer& viewer) {
  if (viewer.wants) {
    viewer.answer = present_text();
    viewer.request.clear();
    viewer.wants = false;
  }
  if (viewer.answer.empty()) return true;
  const ssize_t sent =
      ::send(viewer.socket.get(), viewer.answer.data(), viewer.answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return is_for_later();
  viewer.answer.erase(0, std::size_t(sent));
  return true;
}

const std::string& SnapshotServer::present_text() {
  if (!text_.empty() && Clock::now() - taken_ < kLeastGap) return text_;
  Snapshot snapshot = take_snapshot(system_);
  if (complete_) complete_(snapshot);
  text_ = snapshot_text(snapshot);
  taken_ = Clock::now();
  return text_;
}

}  // namespace rnicsim::sim
