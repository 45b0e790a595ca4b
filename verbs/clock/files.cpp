// Calls that take a path: it leads to the simulated host's own file, where it has one (host_path.h).

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "verbs/clock/fifos.h"
#include "verbs/clock/host_path.h"
#include "verbs/clock/made_files.h"
#include "verbs/clock/next.h"

using rnicsim::clock::hide_host_path;
using rnicsim::clock::HostPath;
using rnicsim::clock::Next;

RNICSIM_NEXT(open);
RNICSIM_NEXT(open64);
RNICSIM_NEXT(openat);
RNICSIM_NEXT(openat64);
RNICSIM_NEXT(fopen);
RNICSIM_NEXT(fopen64);
RNICSIM_NEXT(readlink);
RNICSIM_NEXT(readlinkat);
RNICSIM_NEXT(realpath);
RNICSIM_NEXT(getcwd);
RNICSIM_NEXT(rename);
RNICSIM_NEXT(renameat);
RNICSIM_NEXT(renameat2);
RNICSIM_NEXT(link);
RNICSIM_NEXT(linkat);
// What <fcntl.h> makes of open in a program that was compiled with _FORTIFY_SOURCE.
static const Next<int(const char*, int)> next_open_2{"__open_2"};
static const Next<int(const char*, int)> next_open64_2{"__open64_2"};
static const Next<int(int, const char*, int)> next_openat_2{"__openat_2"};
static const Next<int(int, const char*, int)> next_openat64_2{"__openat64_2"};

namespace {

// Only a file that may be made has a mode.
mode_t mode_of(int flags, va_list list) {
  const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return makes ? mode_t(va_arg(list, unsigned)) : 0;
}

// `open` opens the path, with the flags, that it is given.
template <class Open>
int open_path(int folder, const char* given, int flags, Open open) {
  const int made = rnicsim::clock::open_made_file(given, flags);
  if (made >= 0) return made;
  const HostPath path(given);
  const auto open_with = [&](int with) { return open(path.get(), with); };
  const bool waits = rnicsim::clock::waits_for_other_end(folder, path.get(), flags);
  return waits ? rnicsim::clock::open_fifo(flags, open_with) : open_with(flags);
}

template <class Open>
FILE* open_stream(const char* given, const char* mode, Open open) {
  FILE* made = rnicsim::clock::open_made_stream(given, mode);
  return made != nullptr ? made : open(HostPath(given).get(), mode);
}

}  // namespace

// The next function with the path in its first place, or in its second behind an open folder. By its name in the
// library, which the headers declare in several ways.
#define RNICSIM_PATH_CALL(result, name, parameters, ...)                     \
  RNICSIM_NEXT(name);                                                        \
  RNICSIM_EXPORT result own_##name parameters asm(#name);                    \
  result own_##name parameters {                                             \
    return next_##name(HostPath(path).get() __VA_OPT__(, ) __VA_ARGS__);     \
  }
#define RNICSIM_PATH_AT_CALL(result, name, parameters, ...)                        \
  RNICSIM_NEXT(name);                                                              \
  RNICSIM_EXPORT result own_##name parameters asm(#name);                          \
  result own_##name parameters {                                                   \
    return next_##name(folder, HostPath(path).get() __VA_OPT__(, ) __VA_ARGS__);   \
  }

// --- Opening.

RNICSIM_EXPORT int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_path(AT_FDCWD, path, flags, [&](auto real, int with) { return next_open(real, with, mode); });
}
RNICSIM_EXPORT int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_path(AT_FDCWD, path, flags, [&](auto real, int with) { return next_open64(real, with, mode); });
}
RNICSIM_EXPORT int openat(int folder, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_path(folder, path, flags, [&](auto real, int with) { return next_openat(folder, real, with, mode); });
}
RNICSIM_EXPORT int openat64(int folder, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_path(folder, path, flags, [&](auto real, int with) { return next_openat64(folder, real, with, mode); });
}
RNICSIM_EXPORT int __open_2(const char* path, int flags) {
  return open_path(AT_FDCWD, path, flags, [&](auto real, int with) { return next_open_2(real, with); });
}
RNICSIM_EXPORT int __open64_2(const char* path, int flags) {
  return open_path(AT_FDCWD, path, flags, [&](auto real, int with) { return next_open64_2(real, with); });
}
RNICSIM_EXPORT int __openat_2(int folder, const char* path, int flags) {
  return open_path(folder, path, flags, [&](auto real, int with) { return next_openat_2(folder, real, with); });
}
RNICSIM_EXPORT int __openat64_2(int folder, const char* path, int flags) {
  return open_path(folder, path, flags, [&](auto real, int with) { return next_openat64_2(folder, real, with); });
}

RNICSIM_EXPORT FILE* fopen(const char* path, const char* mode) { return open_stream(path, mode, next_fopen.get()); }
RNICSIM_EXPORT FILE* fopen64(const char* path, const char* mode) { return open_stream(path, mode, next_fopen64.get()); }
RNICSIM_PATH_CALL(FILE*, freopen, (const char* path, const char* mode, FILE* stream), mode, stream)
RNICSIM_PATH_CALL(FILE*, freopen64, (const char* path, const char* mode, FILE* stream), mode, stream)
RNICSIM_PATH_CALL(int, creat, (const char* path, mode_t mode), mode)
RNICSIM_PATH_CALL(int, creat64, (const char* path, mode_t mode), mode)

// --- Looking.

RNICSIM_PATH_CALL(int, stat, (const char* path, struct stat* result), result)
RNICSIM_PATH_CALL(int, stat64, (const char* path, struct stat64* result), result)
// (Not by fstatat(), by which `rm -r` asks: it takes away the link, and leaves the machine its folder.)
RNICSIM_NEXT(lstat);
RNICSIM_NEXT(lstat64);
RNICSIM_EXPORT int lstat(const char* path, struct stat* result) noexcept {
  return next_lstat(HostPath(path).seen(), result);
}
RNICSIM_EXPORT int lstat64(const char* path, struct stat64* result) noexcept {
  return next_lstat64(HostPath(path).seen(), result);
}
RNICSIM_PATH_AT_CALL(int, fstatat, (int folder, const char* path, struct stat* result, int flags), result, flags)
RNICSIM_PATH_AT_CALL(int, fstatat64, (int folder, const char* path, struct stat64* result, int flags), result, flags)
RNICSIM_NEXT(statx);
RNICSIM_EXPORT int statx(int folder, const char* path, int flags, unsigned mask, struct statx* result) noexcept {
  return next_statx(folder, HostPath(path).seen(), flags, mask, result);
}
RNICSIM_PATH_CALL(int, statfs, (const char* path, struct statfs* result), result)
RNICSIM_PATH_CALL(int, statfs64, (const char* path, struct statfs64* result), result)
RNICSIM_PATH_CALL(int, statvfs, (const char* path, struct statvfs* result), result)
RNICSIM_PATH_CALL(int, statvfs64, (const char* path, struct statvfs64* result), result)
RNICSIM_PATH_CALL(int, access, (const char* path, int mode), mode)
RNICSIM_PATH_CALL(int, euidaccess, (const char* path, int mode), mode)
RNICSIM_PATH_CALL(int, eaccess, (const char* path, int mode), mode)
RNICSIM_PATH_AT_CALL(int, faccessat, (int folder, const char* path, int mode, int flags), mode, flags)
RNICSIM_PATH_CALL(long, pathconf, (const char* path, int name), name)
RNICSIM_PATH_AT_CALL(int, inotify_add_watch, (int folder, const char* path, uint32_t mask), mask)
// ls -l asks for access control lists.
RNICSIM_PATH_CALL(ssize_t, getxattr, (const char* path, const char* name, void* value, size_t size), name, value, size)
RNICSIM_PATH_CALL(ssize_t, lgetxattr, (const char* path, const char* name, void* value, size_t size), name, value, size)

RNICSIM_PATH_CALL(DIR*, opendir, (const char* path))
RNICSIM_PATH_CALL(int, scandir, (const char* path, dirent*** list, int (*filter)(const dirent*),
                                 int (*compare)(const dirent**, const dirent**)), list, filter, compare)
RNICSIM_PATH_CALL(int, scandir64, (const char* path, dirent64*** list, int (*filter)(const dirent64*),
                                   int (*compare)(const dirent64**, const dirent64**)), list, filter, compare)

RNICSIM_EXPORT ssize_t readlink(const char* path, char* buffer, size_t size) noexcept {
  const ssize_t length = next_readlink(HostPath(path).seen(), buffer, size);
  return length > 0 ? ssize_t(hide_host_path(buffer, size_t(length))) : length;
}
RNICSIM_EXPORT ssize_t readlinkat(int folder, const char* path, char* buffer, size_t size) noexcept {
  const ssize_t length = next_readlinkat(folder, HostPath(path).seen(), buffer, size);
  return length > 0 ? ssize_t(hide_host_path(buffer, size_t(length))) : length;
}
RNICSIM_EXPORT char* realpath(const char* path, char* resolved) noexcept {
  char* result = next_realpath(HostPath(path).get(), resolved);
  if (result != nullptr) result[hide_host_path(result, strlen(result))] = 0;
  return result;
}

// --- Where the process stands.

RNICSIM_PATH_CALL(int, chdir, (const char* path))
RNICSIM_EXPORT char* getcwd(char* buffer, size_t size) noexcept {
  char* result = next_getcwd(buffer, size);
  if (result != nullptr) result[hide_host_path(result, strlen(result))] = 0;
  return result;
}
RNICSIM_EXPORT char* get_current_dir_name() noexcept { return ::getcwd(nullptr, 0); }

// --- Making, changing, taking away.

RNICSIM_PATH_CALL(int, mkdir, (const char* path, mode_t mode), mode)
RNICSIM_PATH_AT_CALL(int, mkdirat, (int folder, const char* path, mode_t mode), mode)
RNICSIM_PATH_CALL(int, mkfifo, (const char* path, mode_t mode), mode)
RNICSIM_PATH_AT_CALL(int, mkfifoat, (int folder, const char* path, mode_t mode), mode)
RNICSIM_PATH_CALL(int, mknod, (const char* path, mode_t mode, dev_t device), mode, device)
RNICSIM_PATH_AT_CALL(int, mknodat, (int folder, const char* path, mode_t mode, dev_t device), mode, device)
RNICSIM_PATH_CALL(int, rmdir, (const char* path))
RNICSIM_PATH_CALL(int, unlink, (const char* path))
RNICSIM_PATH_AT_CALL(int, unlinkat, (int folder, const char* path, int flags), flags)
RNICSIM_PATH_CALL(int, remove, (const char* path))
RNICSIM_PATH_CALL(int, chmod, (const char* path, mode_t mode), mode)
RNICSIM_PATH_AT_CALL(int, fchmodat, (int folder, const char* path, mode_t mode, int flags), mode, flags)
RNICSIM_PATH_CALL(int, chown, (const char* path, uid_t owner, gid_t group), owner, group)
RNICSIM_PATH_CALL(int, lchown, (const char* path, uid_t owner, gid_t group), owner, group)
RNICSIM_PATH_AT_CALL(int, fchownat, (int folder, const char* path, uid_t owner, gid_t group, int flags), owner, group,
                     flags)
RNICSIM_PATH_CALL(int, truncate, (const char* path, off_t length), length)
RNICSIM_PATH_CALL(int, truncate64, (const char* path, off64_t length), length)
RNICSIM_PATH_CALL(int, utime, (const char* path, const utimbuf* times), times)
RNICSIM_PATH_CALL(int, utimes, (const char* path, const timeval* times), times)
RNICSIM_PATH_CALL(int, lutimes, (const char* path, const timeval* times), times)
RNICSIM_PATH_AT_CALL(int, utimensat, (int folder, const char* path, const timespec* times, int flags), times, flags)

// A link keeps the words that it is given; where it leads shows when it is followed, outside.
RNICSIM_EXPORT int own_symlink(const char* target, const char* path) asm("symlink");
RNICSIM_NEXT(symlink);
int own_symlink(const char* target, const char* path) {
  return next_symlink(HostPath(target).get(), HostPath(path).get());
}
RNICSIM_EXPORT int own_symlinkat(const char* target, int folder, const char* path) asm("symlinkat");
RNICSIM_NEXT(symlinkat);
int own_symlinkat(const char* target, int folder, const char* path) {
  return next_symlinkat(HostPath(target).get(), folder, HostPath(path).get());
}

RNICSIM_EXPORT int rename(const char* from, const char* to) noexcept {
  return next_rename(HostPath(from).get(), HostPath(to).get());
}
RNICSIM_EXPORT int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return next_renameat(from_folder, HostPath(from).get(), to_folder, HostPath(to).get());
}
RNICSIM_EXPORT int renameat2(int from_folder, const char* from, int to_folder, const char* to,
                             unsigned flags) noexcept {
  return next_renameat2(from_folder, HostPath(from).get(), to_folder, HostPath(to).get(), flags);
}
RNICSIM_EXPORT int link(const char* from, const char* to) noexcept {
  return next_link(HostPath(from).get(), HostPath(to).get());
}
RNICSIM_EXPORT int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  return next_linkat(from_folder, HostPath(from).get(), to_folder, HostPath(to).get(), flags);
}
