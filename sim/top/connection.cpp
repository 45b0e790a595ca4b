#include "sim/top/connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "sim/config/config_error.h"
#include "sim/snapshot_server.h"

namespace rnicsim::sim::top {
namespace {

// Of a fabric with thousands of hosts, some MB; more than this is no snapshot.
constexpr std::size_t kMostBytes = 1u << 28;

std::string command_of(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/cmdline", pid));
  std::string text(std::istreambuf_iterator<char>(in), {});
  while (text.ends_with('\0')) text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  return shown(text);
}

}  // namespace

std::vector<RunningProcess> running_processes() {
  const std::string example = snapshot_socket(0);
  const std::string prefix = "@" + example.substr(0, example.size() - 1);
  std::vector<pid_t> pids;
  std::ifstream in("/proc/net/unix");
  for (std::string line; std::getline(in, line);) {
    const auto start = line.rfind(' ') + 1;
    if (line.compare(start, prefix.size(), prefix) != 0) continue;
    pid_t pid = 0;
    const char* end = line.data() + line.size();
    if (std::from_chars(line.data() + start + prefix.size(), end, pid).ptr == end) pids.push_back(pid);
  }
  // Once for the socket that listens, once for each that is connected to it.
  std::ranges::sort(pids);
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  std::vector<RunningProcess> result;
  for (const pid_t pid : pids) result.push_back({pid, command_of(pid)});
  return result;
}

Connection::Connection(pid_t pid) : pid_(pid), socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const std::string name = snapshot_socket(pid);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const bool connected = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), bytes) == 0;
  ucred peer{};
  socklen_t length = sizeof peer;
  if (!connected || ::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
      peer.uid != ::geteuid())
    throw ConfigError(fmt::format("no run of yours has the process number {}", pid));
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
    if (received_.size() > kMostBytes) throw std::runtime_error("what the run answers has no end");
  }
  if (ended_) return std::nullopt;
  const std::string text = std::exchange(received_, {});
  try {
    return read_snapshot(text);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("what run {} answers makes no sense: {}", pid_, error.what()));
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
