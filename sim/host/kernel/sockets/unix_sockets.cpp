// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/sockets/unix_sockets.h"

#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdint>

#include "sim/host/kernel/files/host_path.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"

namespace rnicsim::clock {
namespace {

constexpr std::size_t kHeader = offsetof(sockaddr_un, sun_path);
constexpr std::size_t kRoom = sizeof(sockaddr_un::sun_path);

// FNV-1a: an abstract name that leaves no room for the host's tag is replaced by its hash.
std::uint64_t hash(const char* bytes, std::size_t count) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (std::size_t i = 0; i < count; ++i) value = (value ^ std::uint8_t(bytes[i])) * 0x100000001b3;
  return value;
}

}  // namespace

UnixAddress::UnixAddress(const sockaddr* given, socklen_t length, Last last) : address_(given), length_(length) {
  if (session() == nullptr || given == nullptr || length <= kHeader || length > sizeof(sockaddr_un) ||
      given->sa_family != AF_UNIX)
    return;
  sockaddr_un named{};
  memcpy(&named, given, length);
  if (named.sun_path[0] == 0) {
    set_abstract(named, length);
    return;
  }
  char path[kRoom + 1] = {};
  memcpy(path, named.sun_path, length - kHeader);
  const HostPath leads(path, last);
  if (leads.is_other()) set_path(leads.get());
}

UnixAddress::~UnixAddress() {
  if (folder_ >= 0) raw_call(SYS_close, folder_);
}

void UnixAddress::set_abstract(const sockaddr_un& given, socklen_t length) {
  const char* name = given.sun_path + 1;
  const std::size_t bytes = length - kHeader - 1;
  const std::size_t tag = strlen(host_tag());
  own_.sun_family = AF_UNIX;
  memcpy(own_.sun_path + 1, host_tag(), tag);
  std::size_t used = 1 + tag;
  if (used + bytes <= kRoom) {
    memcpy(own_.sun_path + used, name, bytes);
    used += bytes;
  } else {
    used += std::size_t(snprintf(own_.sun_path + used, kRoom - used, "#%016lx", hash(name, bytes)));
  }
  address_ = reinterpret_cast<const sockaddr*>(&own_);
  length_ = socklen_t(kHeader + used);
}

// A path that is too long for an address is named by a descriptor of its folder.
void UnixAddress::set_path(const char* path) {
  own_.sun_family = AF_UNIX;
  const std::size_t length = strlen(path);
  const char* slash = strrchr(path, '/');
  if (length < kRoom) {
    memcpy(own_.sun_path, path, length + 1);
  } else {
    char folder[PATH_MAX];
    const auto folder_length = std::size_t(slash - path);
    memcpy(folder, path, folder_length);
    folder[folder_length] = 0;
    folder_ = int(raw_call(SYS_openat, AT_FDCWD, folder, O_PATH | O_DIRECTORY | O_CLOEXEC));
    snprintf(own_.sun_path, kRoom, "/proc/self/fd/%d%s", folder_, slash);
  }
  address_ = reinterpret_cast<const sockaddr*>(&own_);
  length_ = socklen_t(kHeader + strlen(own_.sun_path) + 1);
}

void hide_unix_address(sockaddr* address, socklen_t room, socklen_t* length) {
  if (session() == nullptr || address == nullptr || length == nullptr || *length <= kHeader || *length > room ||
      address->sa_family != AF_UNIX)
    return;
  auto* named = reinterpret_cast<sockaddr_un*>(address);
  const std::size_t bytes = *length - kHeader;
  if (named->sun_path[0] == 0) {
    const std::size_t tag = strlen(host_tag());
    if (bytes < 1 + tag || memcmp(named->sun_path + 1, host_tag(), tag) != 0) return;
    memmove(named->sun_path + 1, named->sun_path + 1 + tag, bytes - 1 - tag);
    memset(named->sun_path + bytes - tag, 0, tag);  // for programs that read the name up to a zero
    *length -= socklen_t(tag);
    return;
  }
  const std::size_t text = strnlen(named->sun_path, bytes);
  const std::size_t left = hide_host_path(named->sun_path, text);
  if (left == text) return;
  named->sun_path[left] = 0;
  *length = socklen_t(kHeader + left + 1);
}

}  // namespace rnicsim::clock
