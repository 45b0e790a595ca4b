// SPDX-License-Identifier: Apache-2.0
#include "sim/os/local_socket.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>

namespace rnicsim::sim {

std::optional<SocketAddress> abstract_address(const std::string& name) {
  SocketAddress result;
  result.address.sun_family = AF_UNIX;
  if (name.empty() || name.size() >= sizeof result.address.sun_path) return std::nullopt;
  std::memcpy(result.address.sun_path + 1, name.data(), name.size());
  result.bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return result;
}

ucred peer_of(int socket) {
  constexpr ucred kNobody{0, uid_t(-1), gid_t(-1)};
  ucred peer = kNobody;
  socklen_t length = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer : kNobody;
}

bool is_own_user(const ucred& peer) { return peer.uid == ::geteuid(); }

Descriptor connect_to(const std::string& name, int type) {
  constexpr int kTries = 100;
  constexpr useconds_t kPauseUs = 10'000;
  const auto named = abstract_address(name);
  Descriptor socket(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!named) {
    errno = EINVAL;
    return {};
  }
  if (!socket) return {};
  // EAGAIN: the listener's queue is full; try again.
  for (int tries = 1; ::connect(socket.get(), named->get(), named->bytes) != 0; ++tries) {
    if (errno != EAGAIN || tries == kTries) return {};
    ::usleep(kPauseUs);
  }
  return socket;
}

std::vector<std::string> socket_names(const std::string& prefix) {
  const std::string shown = '@' + prefix;  // the kernel prints '@' for the leading NUL
  std::vector<std::string> names;
  std::ifstream in("/proc/net/unix");
  for (std::string line; std::getline(in, line);) {
    const auto start = line.rfind(' ') + 1;
    if (line.compare(start, shown.size(), shown) == 0) names.push_back(line.substr(start + 1));
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace rnicsim::sim
