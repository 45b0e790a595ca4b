// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/netlink/host_view.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <span>
#include <string_view>

#include "sim/host/kernel/files/host_path.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"

namespace rnicsim::clock {
namespace {

std::string_view read_own_file(const char* path, std::span<char> room) {
  const HostPath leads(path);
  if (!leads.is_own()) return {};
  const long file = raw_call(SYS_openat, AT_FDCWD, leads.get(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const long bytes = raw_call(SYS_read, file, room.data(), room.size());
  raw_call(SYS_close, file);
  std::string_view text(room.data(), bytes > 0 ? std::size_t(bytes) : 0);
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

}  // namespace

HostView own_view() { return {session()->interfaces(), session()->header().host_index, read_own_file}; }

}  // namespace rnicsim::clock
