// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/files/known_descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "sim/host/shim/raw_call.h"

namespace rnicsim::clock {
namespace {

struct Entry {
  bool used = false;
  KnownDescriptor descriptor;
  dev_t device = 0;
  ino_t inode = 0;
};
constexpr int kMostDescriptors = 4096;
constinit Entry entries[kMostDescriptors];

Entry* entry(int fd) { return fd >= 0 && fd < kMostDescriptors ? &entries[fd] : nullptr; }

// errno stays.
bool look(int fd, struct stat& file) { return raw_call(SYS_fstat, fd, &file) == 0; }

bool is_random_device(const struct stat& file) {
  return S_ISCHR(file.st_mode) && (file.st_rdev == makedev(1, 8) || file.st_rdev == makedev(1, 9));
}

}  // namespace

std::optional<KnownDescriptor> known(int fd) {
  Entry* found = entry(fd);
  if (found == nullptr || !found->used) return std::nullopt;
  struct stat file {};
  if (look(fd, file) && file.st_dev == found->device && file.st_ino == found->inode) return found->descriptor;
  *found = {};
  return std::nullopt;
}

bool remember(int fd, const KnownDescriptor& descriptor) {
  struct stat file {};
  Entry* place = entry(fd);
  if (place == nullptr || !look(fd, file)) return false;
  *place = {true, descriptor, file.st_dev, file.st_ino};
  return true;
}

void copy_knowledge(int from, int to) {
  if (const auto descriptor = known(from)) {
    remember(to, *descriptor);
  } else {
    forget(to);
  }
}

void forget(int fd) {
  if (Entry* found = entry(fd)) *found = {};
}

bool is_known_event(std::uint32_t number) {
  return std::ranges::any_of(entries, [&](const Entry& each) {
    return each.used && (each.descriptor.timer == number || each.descriptor.signals == number);
  });
}

int next_known(int fd) {
  for (fd = std::max(fd, 0); fd < kMostDescriptors; ++fd)
    if (entries[fd].used) return fd;
  return -1;
}

static bool leads_to(int fd, std::string_view name) {
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  char target[32];
  const long length = raw_call(SYS_readlinkat, AT_FDCWD, link, target, sizeof target);
  return length > 0 && std::string_view(target, std::size_t(length)) == name;
}
bool is_event_descriptor(int fd) { return leads_to(fd, "anon_inode:[eventfd]"); }
bool is_epoll(int fd) { return leads_to(fd, "anon_inode:[eventpoll]"); }

// No memory is allocated, so that the addresses in a program's heap do not depend on it.
void know_inherited(void (*know_socket)(int fd), void (*know_event)(int fd)) {
  const auto folder = int(raw_call(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  alignas(dirent64) char buffer[4096];
  for (long bytes; (bytes = raw_call(SYS_getdents64, folder, buffer, sizeof buffer)) > 0;) {
    for (long at = 0; at < bytes;) {
      const auto* listed = reinterpret_cast<const dirent64*>(buffer + at);
      at += listed->d_reclen;
      const int fd = ::atoi(listed->d_name);
      struct stat file {};
      if (listed->d_name[0] == '.' || !look(fd, file)) continue;
      if (is_random_device(file)) remember(fd, {.is_random = true});
      if (S_ISSOCK(file.st_mode)) know_socket(fd);
      if ((file.st_mode & S_IFMT) == 0 && is_event_descriptor(fd)) know_event(fd);
    }
  }
  raw_call(SYS_close, folder);
}

}  // namespace rnicsim::clock
