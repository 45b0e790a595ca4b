// SPDX-License-Identifier: Apache-2.0
#include "sim/top/connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "sim/config/config_error.h"
#include "sim/os/local_socket.h"
#include "sim/snapshot_server.h"

namespace rnicsim::sim::top {
namespace {

// Largest accepted snapshot; one of thousands of hosts has some MB.
constexpr std::size_t kMostBytes = 1u << 28;

std::string command_of(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/cmdline", pid));
  std::string text(std::istreambuf_iterator<char>(in), {});
  while (text.ends_with('\0')) text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  return shown(text);
}

// Another user may listen at names like those of our runs.
bool is_own_run(const std::string& name) {
  const Descriptor visitor = connect_to(name, SOCK_STREAM);
  return visitor && is_own_user(peer_of(visitor.get()));
}

}  // namespace

std::vector<RunningProcess> running_processes() {
  const std::string example = snapshot_socket(0);
  const std::string prefix = example.substr(0, example.size() - 1);
  std::vector<pid_t> pids;
  for (const std::string& name : socket_names(prefix)) {
    pid_t pid = 0;
    const char* end = name.data() + name.size();
    if (std::from_chars(name.data() + prefix.size(), end, pid).ptr == end && is_own_run(name)) pids.push_back(pid);
  }
  std::ranges::sort(pids);
  std::vector<RunningProcess> result;
  for (const pid_t pid : pids) result.push_back({pid, command_of(pid)});
  return result;
}

Connection::Connection(pid_t pid) : pid_(pid), socket_(connect_to(snapshot_socket(pid), SOCK_STREAM)) {
  if (!socket_ || !is_own_user(peer_of(socket_.get())))
    throw ConfigError(fmt::format("no simulation of yours has process ID {}", pid));
}

void Connection::ask() {
  const std::string_view request = kSnapshotRequest;
  if (::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) ended_ = true;
}

std::optional<Snapshot> Connection::receive() {
  std::array<char, 65536> bytes;
  while (!ended_ && !received_.ends_with('\n')) {
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
    if (got <= 0) ended_ = true;
    if (got > 0) received_.append(bytes.data(), std::size_t(got));
    if (received_.size() > kMostBytes) throw std::runtime_error("the answer of the simulation does not end");
  }
  if (ended_) return std::nullopt;
  const std::string text = std::exchange(received_, {});
  try {
    return read_snapshot(text);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("the answer of simulation {} is not valid: {}", pid_, error.what()));
  }
}

std::optional<Snapshot> Connection::ask_and_wait(std::chrono::milliseconds most) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + most;
  ask();
  for (;;) {
    if (auto snapshot = receive()) return snapshot;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (ended_ || left <= 0) return std::nullopt;
    pollfd watched{socket_.get(), POLLIN, 0};
    ::poll(&watched, 1, int(left));
  }
}

}  // namespace rnicsim::sim::top
