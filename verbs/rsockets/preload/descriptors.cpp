// SPDX-License-Identifier: Apache-2.0
#include "verbs/rsockets/preload/descriptors.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>

#include "verbs/rsockets/preload/next_calls.h"

namespace rnicsim::rsockets::preload {

namespace {

constexpr int kMost = 65536;

// 0: not a placeholder; otherwise kind and number of the target, plus 1.
std::array<std::atomic<std::uint64_t>, kMost> table;
std::mutex changes;

constexpr std::uint64_t kRsocketMark = 1ull << 32;

std::uint64_t packed(Behind target) {
  return (target.kind == Kind::rsocket ? kRsocketMark : 0) + std::uint64_t(target.fd) + 1;
}
Behind unpacked(std::uint64_t value) {
  --value;
  return {(value & kRsocketMark) != 0 ? Kind::rsocket : Kind::ordinary, int(std::uint32_t(value))};
}

std::uint64_t entry(int fd) { return fd >= 0 && fd < kMost ? table[std::size_t(fd)].load() : 0; }

}  // namespace

Behind behind(int fd) {
  const std::uint64_t value = entry(fd);
  return value != 0 ? unpacked(value) : Behind{Kind::ordinary, fd};
}
bool is_placeholder(int fd) { return entry(fd) != 0; }

int open_placeholder(Behind target, bool close_on_exec) {
  const int fd = ::open("/dev/null", O_RDONLY | (close_on_exec ? O_CLOEXEC : 0));
  if (fd < 0) return -1;
  if (fd >= kMost) {
    next_calls().close(fd);
    errno = EMFILE;
    return -1;
  }
  table[std::size_t(fd)] = packed(target);
  return fd;
}

void replace(int fd, Behind target) {
  const std::scoped_lock lock(changes);
  const std::uint64_t before = entry(fd);
  for (auto& value : table) {
    std::uint64_t expected = before;
    value.compare_exchange_strong(expected, packed(target));
  }
}

void share(int fd, int copy) {
  if (copy < 0 || copy >= kMost) return;
  const std::scoped_lock lock(changes);
  table[std::size_t(copy)] = entry(fd);
}

bool drop(int fd, Behind& last) {
  const std::scoped_lock lock(changes);
  const std::uint64_t value = table[std::size_t(fd)].exchange(0);
  last = unpacked(value);
  return std::ranges::none_of(table, [&](const auto& other) { return other.load() == value; });
}

}  // namespace rnicsim::rsockets::preload
