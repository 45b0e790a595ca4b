// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/transactor/path_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

constexpr int kBacklog = 8;

std::optional<sockaddr_un> socket_address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return std::nullopt;
  path.copy(address.sun_path, path.size());
  return address;
}

Descriptor stream_socket() { return Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

bool bind_to(const Descriptor& socket, const sockaddr_un& address) {
  const mode_t before = ::umask(0077);
  const int result = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  ::umask(before);
  errno = error;
  return result == 0;
}

// True: a socket without a listener, left by a process that was killed.
bool is_forsaken(const std::string& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0 && S_ISSOCK(facts.st_mode) && !connect_to_path(path) &&
         errno == ECONNREFUSED;
}

}  // namespace

Descriptor connect_to_path(const std::string& path) {
  const auto address = socket_address_of(path);
  if (!address) {
    errno = ENAMETOOLONG;
    return {};
  }
  auto socket = stream_socket();
  if (socket && ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    const int error = errno;
    socket.reset();
    errno = error;
  }
  return socket;
}

PathListener::PathListener(const std::string& path) : path_(path), socket_(stream_socket()) {
  const auto address = socket_address_of(path);
  if (!address) throw ConfigError(fmt::format("'{}': a socket's path has 1 to 107 bytes", path));
  const auto fail = [&] { throw ConfigError(fmt::format("{}: {}", path, std::strerror(errno))); };
  if (!socket_) fail();
  if (!bind_to(socket_, *address)) {
    if (errno != EADDRINUSE) fail();
    if (!is_forsaken(path)) throw ConfigError(fmt::format("{}: the file exists, and is in use or not a socket", path));
    if (::unlink(path.c_str()) != 0 || !bind_to(socket_, *address)) fail();
  }
  if (::listen(socket_.get(), kBacklog) != 0) fail();
}

PathListener::~PathListener() { ::unlink(path_.c_str()); }

Descriptor PathListener::accept() const {
  return Descriptor(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

}  // namespace rnicsim::sim
