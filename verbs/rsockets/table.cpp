// SPDX-License-Identifier: Apache-2.0
#include "verbs/rsockets/table.h"

#include <mutex>
#include <shared_mutex>
#include <vector>

namespace rnicsim::rsockets {

namespace {

struct Table {
  std::shared_mutex mutex;
  std::vector<SocketRef> sockets;
};
// Never destroyed: threads of the program may outlive main().
Table& table() {
  static Table& only = *new Table;
  return only;
}

}  // namespace

SocketRef find_socket(int fd) {
  const std::shared_lock lock(table().mutex);
  if (fd < 0 || std::size_t(fd) >= table().sockets.size()) return nullptr;
  return table().sockets[std::size_t(fd)];
}

void add_socket(SocketRef socket) {
  const std::unique_lock lock(table().mutex);
  const auto index = std::size_t(socket->fd());
  if (index >= table().sockets.size()) table().sockets.resize(index + 1);
  table().sockets[index] = std::move(socket);
}

SocketRef take_socket(int fd) {
  const std::unique_lock lock(table().mutex);
  if (fd < 0 || std::size_t(fd) >= table().sockets.size()) return nullptr;
  return std::move(table().sockets[std::size_t(fd)]);
}

}  // namespace rnicsim::rsockets
