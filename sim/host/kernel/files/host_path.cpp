// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/files/host_path.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "model/abi/host_files.h"
#include "sim/host/kernel/files/linked_folder.h"
#include "sim/host/kernel/processes/other_processes.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"

RNICSIM_NEXT(access);

namespace rnicsim::clock {
namespace {

// Files of the kernel that are the host's own; a folder stands for all that is below it.
constexpr std::string_view kOfKernel[] = {
    "/dev/infiniband",
    "/etc/hostname",
    "/etc/hosts",
    "/proc/net",
    "/proc/self/net",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/random/boot_id",
    "/sys/class/infiniband",
    "/sys/class/infiniband_mad",
    "/sys/class/infiniband_verbs",
    "/sys/class/net",
    "/sys/devices/pci0001:00",
};

struct Linked {
  std::string_view path;
  bool is_filled;  // the links are known to be there
};
constinit Linked linked[] = {{"/tmp", false}, {"/var/tmp", false}};

// A real folder that stands for a folder of the host.
struct Root {
  std::string_view stands_for = "";
  char path[PATH_MAX] = {};
  std::size_t length = 0;  // 0: no such folder
  std::string_view text() const { return {path, length}; }
};
constinit Root shared_memory{"/dev/shm"};
constinit Root kernel_files;
constinit Root files;  // all other files of the host
char tag[64];

bool lies_in(std::string_view path, const Root& folder) {
  return folder.length != 0 && path.starts_with(folder.text()) &&
         (path.size() == folder.length || path[folder.length] == '/');
}

// True: a folder that only this user can have made and filled. Any local user can make a folder of that name in /tmp.
bool is_private(const char* path) {
  struct stat status {};
  return raw_call(SYS_newfstatat, AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == uid_t(raw_call(SYS_geteuid)) && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

bool set(Root& folder, const char* prefix, const char* socket_name, const char* host, const char* name) {
  folder.length = 0;
  const int run = snprintf(folder.path, sizeof folder.path, "%s%s", prefix, socket_name);
  if (run <= 0 || std::size_t(run) >= sizeof folder.path || !is_private(folder.path)) return false;
  const int rest = snprintf(folder.path + run, sizeof folder.path - std::size_t(run), "/%s%s", host, name);
  const bool fits = rest > 0 && std::size_t(run + rest) < sizeof folder.path;
  folder.length = fits && next_access(folder.path, X_OK) == 0 ? std::size_t(run + rest) : 0;
  return folder.length != 0;
}

bool is_below(std::string_view name, std::string_view folder) {
  return name.starts_with(folder) && (name.size() == folder.size() || name[folder.size()] == '/');
}

class Tree : public HostTree {
 public:
  OwnFolder holding(std::string_view name) const override {
    for (const std::string_view folder : kOfKernel)
      if (is_below(name, folder)) return {.name = folder, .root = kernel_files.text()};
    const std::string_view memory = shared_memory.stands_for;
    if (is_below(name, memory)) return {.name = memory, .root = shared_memory.text(), .stripped = memory.size()};
    for (Linked& folder : linked) {
      if (!is_below(name, folder.path)) continue;
      folder.is_filled = folder.is_filled || fill_linked_folder(files.text(), folder.path);
      return {.name = folder.path, .root = files.text(), .shows_machine = true};
    }
    return {};
  }
  std::optional<Inside> inside(std::string_view path) const override {
    for (const Root* root : {&shared_memory, &kernel_files, &files})
      if (lies_in(path, *root)) return Inside{root->stands_for, root->length};
    return std::nullopt;
  }
  std::optional<pid_t> find(pid_t number) const override { return simulated() ? find_process(number) : std::nullopt; }
};
constinit const Tree tree;

// A path that Linux refuses with ENAMETOOLONG: for a path of the host that fits, but does not fit at its real place.
constexpr auto kTooLong = [] {
  std::array<char, PATH_MAX + 1> text{};
  text.fill('/');
  text.back() = 0;
  return text;
}();

}  // namespace

void find_host_files(const char* socket_name, const char* host) {
  set(files, abi::kHostFilesPrefix, socket_name, host, "");
  set(shared_memory, abi::kHostMemoryPrefix, socket_name, host, abi::kSharedMemoryFolder);
  if (!set(kernel_files, abi::kHostMemoryPrefix, socket_name, host, abi::kKernelFilesFolder))
    set(kernel_files, abi::kHostFilesPrefix, socket_name, host, abi::kKernelFilesFolder);
  snprintf(tag, sizeof tag, "%s.%s.", socket_name, host);
}

HostPath::HostPath(int folder, const char* given, Last last) : given_(given), path_(given), absolute_(given) {
  if (files.length == 0 || given == nullptr) return;
  PathWalk walk(tree, buffer_);
  const auto led = walk.lead(folder, given, last);
  is_own_ = walk.is_own();
  if (led == PathWalk::Led::too_far) path_ = absolute_ = kTooLong.data();
  if (led == PathWalk::Led::elsewhere) path_ = buffer_;
  if (led == PathWalk::Led::elsewhere || led == PathWalk::Led::as_given) absolute_ = buffer_;
}

LinkText::LinkText(const char* given, const HostPath& place) : text_(given) {
  if (given == nullptr || given[0] != '/' || !place.is_own()) return;
  const std::string_view text = given;
  const OwnFolder own = text.find("/..") == text.npos ? tree.holding(text) : OwnFolder{};
  if (own.is_machines() || own.root.size() + text.size() - own.stripped >= sizeof buffer_) return;
  char* end = std::ranges::copy(own.root, buffer_).out;
  end = std::ranges::copy(text.substr(own.stripped), end).out;
  *end = 0;
  text_ = buffer_;
}

std::size_t hide_host_path(char* path, std::size_t length) {
  const std::string_view text(path, length);
  for (const Root* root : {&shared_memory, &kernel_files, &files}) {
    if (!lies_in(text, *root)) continue;
    const std::size_t rest = length - root->length;
    memmove(path + root->stands_for.size(), path + root->length, rest);
    memcpy(path, root->stands_for.data(), root->stands_for.size());
    return root->stands_for.size() + rest;
  }
  return length;
}

const char* host_tag() { return tag; }

}  // namespace rnicsim::clock
