// What the simulated host has instead of this machine's files: the simulator made a tree of them (sim/attached/
// host_files.cpp), and paths that begin as kReplaced says lead into it. All else is read as it is, outside.

#include "verbs/clock/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "model/abi/host_files.h"
#include "verbs/clock/next.h"

RNICSIM_NEXT(open);
RNICSIM_NEXT(open64);
RNICSIM_NEXT(openat);
RNICSIM_NEXT(openat64);
RNICSIM_NEXT(fopen);
RNICSIM_NEXT(fopen64);
RNICSIM_NEXT(stat);
RNICSIM_NEXT(stat64);
RNICSIM_NEXT(lstat);
RNICSIM_NEXT(lstat64);
RNICSIM_NEXT(fstatat);
RNICSIM_NEXT(fstatat64);
RNICSIM_NEXT(statx);
RNICSIM_NEXT(access);
RNICSIM_NEXT(faccessat);
RNICSIM_NEXT(opendir);
RNICSIM_NEXT(scandir);
RNICSIM_NEXT(scandir64);
RNICSIM_NEXT(readlink);
RNICSIM_NEXT(readlinkat);
RNICSIM_NEXT(realpath);
RNICSIM_NEXT(getxattr);
RNICSIM_NEXT(lgetxattr);
// What <fcntl.h> makes of open in a program that was compiled with _FORTIFY_SOURCE.
static const rnicsim::clock::Next<int(const char*, int)> next_open_2{"__open_2"};
static const rnicsim::clock::Next<int(const char*, int)> next_open64_2{"__open64_2"};
static const rnicsim::clock::Next<int(int, const char*, int)> next_openat_2{"__openat_2"};
static const rnicsim::clock::Next<int(int, const char*, int)> next_openat64_2{"__openat64_2"};

namespace rnicsim::clock {
namespace {

// Files, and folders with all that is below them.
constexpr std::string_view kReplaced[] = {
    "/dev/infiniband",
    "/proc/net/if_inet6",
    "/proc/sys/kernel/random/boot_id",
    "/sys/class/infiniband",
    "/sys/class/infiniband_verbs",
    "/sys/class/net",
    "/sys/devices/pci0001:00",
};

char root[PATH_MAX];  // of the host's tree; empty: the machine's own files
std::size_t root_length = 0;

bool is_replaced(std::string_view path) {
  return std::ranges::any_of(kReplaced, [&](std::string_view ours) {
    return path.starts_with(ours) && (path.size() == ours.size() || path[ours.size()] == '/');
  });
}

// Where the path really leads. No memory is allocated: a program's heap must not depend on it.
class Path {
 public:
  explicit Path(const char* given) : path_(given) {
    if (root_length == 0 || given == nullptr || !is_replaced(given)) return;
    const std::size_t length = strlen(given);
    if (root_length + length >= sizeof buffer_) return;
    memcpy(buffer_, root, root_length);
    memcpy(buffer_ + root_length, given, length + 1);
    path_ = buffer_;
  }
  const char* get() const { return path_; }

 private:
  const char* path_;
  char buffer_[PATH_MAX];
};

// As the program knows it.
void hide_root(char* path) {
  if (root_length == 0 || strncmp(path, root, root_length) != 0 || path[root_length] != '/') return;
  memmove(path, path + root_length, strlen(path + root_length) + 1);
}

// Only a file that may be made has a mode.
mode_t mode_of(int flags, va_list list) {
  const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return makes ? mode_t(va_arg(list, unsigned)) : 0;
}

}  // namespace

void find_host_files(const char* socket_name, const char* host) {
  const int length = snprintf(root, sizeof root, "%s%s/%s", abi::kHostFilesPrefix, socket_name, host);
  const bool fits = length > 0 && std::size_t(length) < sizeof root;
  root_length = fits && next_access(root, X_OK) == 0 ? std::size_t(length) : 0;
}

}  // namespace rnicsim::clock

using rnicsim::clock::hide_root;
using rnicsim::clock::mode_of;
using rnicsim::clock::Path;

RNICSIM_EXPORT int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return next_open(Path(path).get(), flags, mode);
}
RNICSIM_EXPORT int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return next_open64(Path(path).get(), flags, mode);
}
RNICSIM_EXPORT int openat(int folder, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return next_openat(folder, Path(path).get(), flags, mode);
}
RNICSIM_EXPORT int openat64(int folder, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return next_openat64(folder, Path(path).get(), flags, mode);
}
RNICSIM_EXPORT int __open_2(const char* path, int flags) { return next_open_2(Path(path).get(), flags); }
RNICSIM_EXPORT int __open64_2(const char* path, int flags) { return next_open64_2(Path(path).get(), flags); }
RNICSIM_EXPORT int __openat_2(int folder, const char* path, int flags) {
  return next_openat_2(folder, Path(path).get(), flags);
}
RNICSIM_EXPORT int __openat64_2(int folder, const char* path, int flags) {
  return next_openat64_2(folder, Path(path).get(), flags);
}

RNICSIM_EXPORT FILE* fopen(const char* path, const char* mode) { return next_fopen(Path(path).get(), mode); }
RNICSIM_EXPORT FILE* fopen64(const char* path, const char* mode) { return next_fopen64(Path(path).get(), mode); }

RNICSIM_EXPORT int stat(const char* path, struct stat* result) noexcept { return next_stat(Path(path).get(), result); }
RNICSIM_EXPORT int stat64(const char* path, struct stat64* result) noexcept {
  return next_stat64(Path(path).get(), result);
}
RNICSIM_EXPORT int lstat(const char* path, struct stat* result) noexcept {
  return next_lstat(Path(path).get(), result);
}
RNICSIM_EXPORT int lstat64(const char* path, struct stat64* result) noexcept {
  return next_lstat64(Path(path).get(), result);
}
RNICSIM_EXPORT int fstatat(int folder, const char* path, struct stat* result, int flags) noexcept {
  return next_fstatat(folder, Path(path).get(), result, flags);
}
RNICSIM_EXPORT int fstatat64(int folder, const char* path, struct stat64* result, int flags) noexcept {
  return next_fstatat64(folder, Path(path).get(), result, flags);
}
RNICSIM_EXPORT int statx(int folder, const char* path, int flags, unsigned mask, struct statx* result) noexcept {
  return next_statx(folder, Path(path).get(), flags, mask, result);
}
RNICSIM_EXPORT int access(const char* path, int mode) noexcept { return next_access(Path(path).get(), mode); }
RNICSIM_EXPORT int faccessat(int folder, const char* path, int mode, int flags) noexcept {
  return next_faccessat(folder, Path(path).get(), mode, flags);
}

RNICSIM_EXPORT DIR* opendir(const char* path) { return next_opendir(Path(path).get()); }
RNICSIM_EXPORT int scandir(const char* path, dirent*** list, int (*filter)(const dirent*),
                           int (*compare)(const dirent**, const dirent**)) {
  return next_scandir(Path(path).get(), list, filter, compare);
}
RNICSIM_EXPORT int scandir64(const char* path, dirent64*** list, int (*filter)(const dirent64*),
                             int (*compare)(const dirent64**, const dirent64**)) {
  return next_scandir64(Path(path).get(), list, filter, compare);
}

RNICSIM_EXPORT ssize_t readlink(const char* path, char* buffer, size_t size) noexcept {
  return next_readlink(Path(path).get(), buffer, size);
}
RNICSIM_EXPORT ssize_t readlinkat(int folder, const char* path, char* buffer, size_t size) noexcept {
  return next_readlinkat(folder, Path(path).get(), buffer, size);
}
RNICSIM_EXPORT char* realpath(const char* path, char* resolved) noexcept {
  char* result = next_realpath(Path(path).get(), resolved);
  if (result != nullptr) hide_root(result);
  return result;
}

// ls -l asks for access control lists.
RNICSIM_EXPORT ssize_t getxattr(const char* path, const char* name, void* value, size_t size) noexcept {
  return next_getxattr(Path(path).get(), name, value, size);
}
RNICSIM_EXPORT ssize_t lgetxattr(const char* path, const char* name, void* value, size_t size) noexcept {
  return next_lgetxattr(Path(path).get(), name, value, size);
}
