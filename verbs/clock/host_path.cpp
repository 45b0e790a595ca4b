#include "verbs/clock/host_path.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "model/abi/host_files.h"
#include "verbs/clock/linked_folder.h"
#include "verbs/clock/next.h"
#include "verbs/clock/other_processes.h"
#include "verbs/clock/raw_call.h"
#include "verbs/clock/session.h"

RNICSIM_NEXT(access);

namespace rnicsim::clock {
namespace {

// Files, and folders with all that is below them.
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
  bool is_filled;  // known to be
};
constinit Linked linked[] = {{"/tmp", false}, {"/var/tmp", false}};

// A folder outside that stands for one of the host's.
struct Root {
  std::string_view stands_for = "";
  char path[PATH_MAX] = {};
  std::size_t length = 0;  // 0: there is none
  std::string_view text() const { return {path, length}; }
};
constinit Root shared_memory{"/dev/shm"};
constinit Root kernel_files;
constinit Root files;  // all others of the host
char tag[64];

// Takes the next component from `path`, which it shortens; empty at the end.
std::string_view next_component(std::string_view& path) {
  for (;;) {
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    const std::string_view component = path.substr(0, path.find('/'));
    path.remove_prefix(component.size());
    if (component != ".") return component;
  }
}

// What follows `folder` in `path`; nothing if it is not below it, or leaves it again.
std::optional<std::string_view> below(std::string_view path, std::string_view folder) {
  while (!folder.empty()) {
    const auto wanted = next_component(folder);
    if (!wanted.empty() && next_component(path) != wanted) return std::nullopt;
  }
  const std::string_view rest = path;
  for (int depth = 0; !path.empty();) {
    const auto component = next_component(path);
    if (component.empty()) break;
    depth += component == ".." ? -1 : 1;
    if (depth < 0) return std::nullopt;
  }
  return rest;
}

bool lies_in(std::string_view path, const Root& folder) {
  return folder.length != 0 && path.starts_with(folder.text()) &&
         (path.size() == folder.length || path[folder.length] == '/');
}

// A folder that this user alone can have made and filled: any local user may make one of the name in /tmp.
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

}  // namespace

void find_host_files(const char* socket_name, const char* host) {
  set(files, abi::kHostFilesPrefix, socket_name, host, "");
  set(shared_memory, abi::kHostMemoryPrefix, socket_name, host, abi::kSharedMemoryFolder);
  if (!set(kernel_files, abi::kHostMemoryPrefix, socket_name, host, abi::kKernelFilesFolder))
    set(kernel_files, abi::kHostFilesPrefix, socket_name, host, abi::kKernelFilesFolder);
  snprintf(tag, sizeof tag, "%s.%s.", socket_name, host);
}

HostPath::HostPath(const char* given) : path_(given) {
  if (files.length == 0 || given == nullptr || given[0] != '/') return;
  const std::string_view text = given;
  if (lies_in(text, files) || lies_in(text, kernel_files) || lies_in(text, shared_memory)) return;
  if (!lead_to_own(text)) lead_to_process(text);
}

// False: it is none of the host's.
bool HostPath::lead_to_own(std::string_view text) {
  for (const std::string_view folder : kOfKernel)
    if (const auto rest = below(text, folder)) return lead_below(kernel_files.text(), folder, *rest);
  if (const auto rest = below(text, shared_memory.stands_for)) return lead_below(shared_memory.text(), "", *rest);
  for (Linked& folder : linked) {
    const auto rest = below(text, folder.path);
    if (!rest) continue;
    folder.is_filled = folder.is_filled || fill_linked_folder(files.text(), folder.path);
    return lead_below(files.text(), folder.path, *rest);
  }
  return false;
}

bool HostPath::lead_below(std::string_view root, std::string_view folder, std::string_view rest) {
  if (root.empty() || root.size() + folder.size() + rest.size() >= sizeof buffer_) return true;
  char* end = std::ranges::copy(root, buffer_).out;
  end = std::ranges::copy(folder, end).out;
  end = std::ranges::copy(rest, end).out;
  *end = 0;
  path_ = buffer_;
  is_own_ = true;
  return true;
}

const char* HostPath::seen() {
  char target[PATH_MAX];
  const long length = is_own_ && lies_in(path_, files) ? raw_call(SYS_readlink, path_, target, sizeof target - 1) : -1;
  if (length <= 0) return path_;
  target[length] = 0;
  const auto rest = below(path_ + files.length, target);
  if (!rest || rest->find_first_not_of('/') != rest->npos) return path_;
  memcpy(buffer_, target, std::size_t(length) + 1);
  return path_ = buffer_;
}

// "/proc/1000/...": the process with that number on this host, else this machine's.
void HostPath::lead_to_process(std::string_view text) {
  constexpr std::string_view kProc = "/proc/";
  if (!text.starts_with(kProc) || !simulated()) return;
  const std::string_view rest = text.substr(kProc.size());
  pid_t number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc() || (end != rest.data() + rest.size() && *end != '/')) return;
  const auto real = find_process(number);
  if (!real) return;
  const int length = snprintf(buffer_, sizeof buffer_, "/proc/%d%s", *real, end);
  if (length < int(sizeof buffer_)) path_ = buffer_;
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
