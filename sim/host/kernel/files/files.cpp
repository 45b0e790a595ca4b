// SPDX-License-Identifier: Apache-2.0
// Interposed functions that take a path. All translate it by HostPath, which leads to the simulated host's own file
// where there is one.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "sim/host/kernel/files/fifos.h"
#include "sim/host/kernel/files/host_path.h"
#include "sim/host/kernel/files/made_files.h"
#include "sim/host/kernel/files/port_counters.h"
#include "sim/host/shim/next.h"

using rnicsim::clock::hide_host_path;
using rnicsim::clock::HostPath;
using rnicsim::clock::Last;
using rnicsim::clock::LinkText;
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
// <fcntl.h> calls these functions for open and openat in programs compiled with _FORTIFY_SOURCE.
static const Next<int(const char*, int)> next_open_2{"__open_2"};
static const Next<int(const char*, int)> next_open64_2{"__open64_2"};
static const Next<int(int, const char*, int)> next_openat_2{"__openat_2"};
static const Next<int(int, const char*, int)> next_openat64_2{"__openat64_2"};

namespace {

// Only a call that may create the file has a mode.
mode_t mode_of(int flags, va_list list) {
  const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return makes ? mode_t(va_arg(list, unsigned)) : 0;
}

// O_NOFOLLOW refuses a link; O_CREAT with O_EXCL does not follow one.
Last last_of(int flags) {
  constexpr int kMakes = O_CREAT | O_EXCL;
  return (flags & O_NOFOLLOW) != 0 || (flags & kMakes) == kMakes ? Last::itself : Last::followed;
}
Last last_at(int flags) { return (flags & AT_SYMLINK_NOFOLLOW) != 0 ? Last::itself : Last::followed; }

// `open` opens the path of its first argument with the flags of its second.
template <class Open>
int open_path(int folder, const char* given, int flags, Open open) {
  const HostPath path(folder, given, last_of(flags));
  const int made = rnicsim::clock::open_made_file(path.absolute(), flags);
  if (made >= 0) return made;
  const auto open_with = [&](int with) { return open(path.get(), with); };
  const bool waits = rnicsim::clock::waits_for_other_end(folder, path.get(), flags);
  const int fd = waits ? rnicsim::clock::open_fifo(flags, open_with) : open_with(flags);
  if (fd >= 0) rnicsim::clock::know_port_counter(fd, given, flags);
  return fd;
}

template <class Open>
FILE* open_stream(const char* given, const char* mode, Open open) {
  const HostPath path(given);
  FILE* made = rnicsim::clock::open_made_stream(path.absolute(), mode);
  if (made != nullptr) return made;
  FILE* stream = open(path.get(), mode);
  const int flags = mode[0] != 'r' || strchr(mode, '+') != nullptr ? O_RDWR : O_RDONLY;
  if (stream != nullptr)
    rnicsim::clock::know_port_counter(::fileno(stream), given, flags | (strchr(mode, 'e') != nullptr ? O_CLOEXEC : 0));
  return stream;
}

}  // namespace

// Interposes a function with the path as its first argument, or as its second behind an open folder. `last` tells what
// the call does with a link (Last). asm() sets the name in the library, because headers declare the functions in
// different ways.
#define RNICSIM_PATH_CALL(result, name, last, parameters, ...) \
  RNICSIM_NEXT(name);                                          \
  RNICSIM_EXPORT result own_##name parameters asm(#name);      \
  result own_##name parameters { return next_##name(HostPath(path, last).get() __VA_OPT__(, ) __VA_ARGS__); }
#define RNICSIM_PATH_AT_CALL(result, name, last, parameters, ...)                              \
  RNICSIM_NEXT(name);                                                                          \
  RNICSIM_EXPORT result own_##name parameters asm(#name);                                      \
  result own_##name parameters {                                                               \
    return next_##name(folder, HostPath(folder, path, last).get() __VA_OPT__(, ) __VA_ARGS__); \
  }

// --- Open.

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
RNICSIM_PATH_CALL(FILE*, freopen, Last::followed, (const char* path, const char* mode, FILE* stream), mode, stream)
RNICSIM_PATH_CALL(FILE*, freopen64, Last::followed, (const char* path, const char* mode, FILE* stream), mode, stream)
RNICSIM_PATH_CALL(int, creat, Last::followed, (const char* path, mode_t mode), mode)
RNICSIM_PATH_CALL(int, creat64, Last::followed, (const char* path, mode_t mode), mode)

// --- Query.

RNICSIM_PATH_CALL(int, stat, Last::followed, (const char* path, struct stat* result), result)
RNICSIM_PATH_CALL(int, stat64, Last::followed, (const char* path, struct stat64* result), result)
// lstat() does not show links to this machine's files. fstatat() does, because `rm -r` uses it: it removes the link,
// and not the machine's folder.
RNICSIM_NEXT(lstat);
RNICSIM_NEXT(lstat64);
RNICSIM_EXPORT int lstat(const char* path, struct stat* result) noexcept {
  return next_lstat(HostPath(path, Last::seen).get(), result);
}
RNICSIM_EXPORT int lstat64(const char* path, struct stat64* result) noexcept {
  return next_lstat64(HostPath(path, Last::seen).get(), result);
}
RNICSIM_PATH_AT_CALL(int, fstatat, last_at(flags), (int folder, const char* path, struct stat* result, int flags),
                     result, flags)
RNICSIM_PATH_AT_CALL(int, fstatat64, last_at(flags), (int folder, const char* path, struct stat64* result, int flags),
                     result, flags)
RNICSIM_NEXT(statx);
RNICSIM_EXPORT int statx(int folder, const char* path, int flags, unsigned mask, struct statx* result) noexcept {
  const Last last = (flags & AT_SYMLINK_NOFOLLOW) != 0 ? Last::seen : Last::followed;
  return next_statx(folder, HostPath(folder, path, last).get(), flags, mask, result);
}
RNICSIM_PATH_CALL(int, statfs, Last::followed, (const char* path, struct statfs* result), result)
RNICSIM_PATH_CALL(int, statfs64, Last::followed, (const char* path, struct statfs64* result), result)
RNICSIM_PATH_CALL(int, statvfs, Last::followed, (const char* path, struct statvfs* result), result)
RNICSIM_PATH_CALL(int, statvfs64, Last::followed, (const char* path, struct statvfs64* result), result)
RNICSIM_PATH_CALL(int, access, Last::followed, (const char* path, int mode), mode)
RNICSIM_PATH_CALL(int, euidaccess, Last::followed, (const char* path, int mode), mode)
RNICSIM_PATH_CALL(int, eaccess, Last::followed, (const char* path, int mode), mode)
RNICSIM_PATH_AT_CALL(int, faccessat, last_at(flags), (int folder, const char* path, int mode, int flags), mode, flags)
RNICSIM_PATH_CALL(long, pathconf, Last::followed, (const char* path, int name), name)
RNICSIM_NEXT(inotify_add_watch);
RNICSIM_EXPORT int inotify_add_watch(int fd, const char* path, uint32_t mask) noexcept {
  const Last last = (mask & IN_DONT_FOLLOW) != 0 ? Last::itself : Last::followed;
  return next_inotify_add_watch(fd, HostPath(path, last).get(), mask);
}
// `ls -l` reads access control lists.
RNICSIM_PATH_CALL(ssize_t, getxattr, Last::followed, (const char* path, const char* name, void* value, size_t size),
                  name, value, size)
RNICSIM_PATH_CALL(ssize_t, lgetxattr, Last::seen, (const char* path, const char* name, void* value, size_t size), name,
                  value, size)
RNICSIM_PATH_CALL(ssize_t, listxattr, Last::followed, (const char* path, char* list, size_t size), list, size)
RNICSIM_PATH_CALL(ssize_t, llistxattr, Last::seen, (const char* path, char* list, size_t size), list, size)

RNICSIM_PATH_CALL(DIR*, opendir, Last::followed, (const char* path))
RNICSIM_PATH_CALL(int, scandir, Last::followed,
                  (const char* path, dirent*** list, int (*filter)(const dirent*),
                   int (*compare)(const dirent**, const dirent**)),
                  list, filter, compare)
RNICSIM_PATH_CALL(int, scandir64, Last::followed,
                  (const char* path, dirent64*** list, int (*filter)(const dirent64*),
                   int (*compare)(const dirent64**, const dirent64**)),
                  list, filter, compare)
RNICSIM_PATH_AT_CALL(int, scandirat, Last::followed,
                     (int folder, const char* path, dirent*** list, int (*filter)(const dirent*),
                      int (*compare)(const dirent**, const dirent**)),
                     list, filter, compare)
RNICSIM_PATH_AT_CALL(int, scandirat64, Last::followed,
                     (int folder, const char* path, dirent64*** list, int (*filter)(const dirent64*),
                      int (*compare)(const dirent64**, const dirent64**)),
                     list, filter, compare)

RNICSIM_EXPORT ssize_t readlink(const char* path, char* buffer, size_t size) noexcept {
  const ssize_t length = next_readlink(HostPath(path, Last::seen).get(), buffer, size);
  return length > 0 ? ssize_t(hide_host_path(buffer, size_t(length))) : length;
}
RNICSIM_EXPORT ssize_t readlinkat(int folder, const char* path, char* buffer, size_t size) noexcept {
  const ssize_t length = next_readlinkat(folder, HostPath(folder, path, Last::seen).get(), buffer, size);
  return length > 0 ? ssize_t(hide_host_path(buffer, size_t(length))) : length;
}
RNICSIM_EXPORT char* realpath(const char* path, char* resolved) noexcept {
  char* result = next_realpath(HostPath(path).get(), resolved);
  if (result != nullptr) result[hide_host_path(result, strlen(result))] = 0;
  return result;
}

// The C library's own search, with functions that look at the host's folders.
template <class Next, class Found, class Entry, class Status>
static int glob_by(Next next, const char* pattern, int flags, int (*failed)(const char*, int), Found* found,
                   Entry* (*read_entry)(DIR*), int (*look)(const char*, Status*),
                   int (*look_at_link)(const char*, Status*)) {
  if ((flags & GLOB_ALTDIRFUNC) != 0) return next(pattern, flags, failed, found);
  found->gl_opendir = [](const char* path) -> void* { return ::opendir(path); };
  found->gl_closedir = [](void* folder) { ::closedir(static_cast<DIR*>(folder)); };
  found->gl_readdir = reinterpret_cast<decltype(found->gl_readdir)>(read_entry);
  found->gl_stat = look;
  found->gl_lstat = look_at_link;
  return next(pattern, flags | GLOB_ALTDIRFUNC, failed, found);
}
RNICSIM_NEXT(glob);
RNICSIM_NEXT(glob64);
RNICSIM_EXPORT int glob(const char* pattern, int flags, int (*failed)(const char*, int), glob_t* found) noexcept {
  return glob_by(next_glob.get(), pattern, flags, failed, found, ::readdir, ::stat, ::lstat);
}
RNICSIM_EXPORT int glob64(const char* pattern, int flags, int (*failed)(const char*, int), glob64_t* found) noexcept {
  return glob_by(next_glob64.get(), pattern, flags, failed, found, ::readdir64, ::stat64, ::lstat64);
}

RNICSIM_EXPORT char* canonicalize_file_name(const char* path) noexcept { return ::realpath(path, nullptr); }

// Forms the key as the C library does, from the numbers of the file and of its device.
RNICSIM_EXPORT key_t ftok(const char* path, int project) noexcept {
  struct stat file;
  if (::stat(path, &file) != 0) return -1;
  return key_t((file.st_ino & 0xffff) | (file.st_dev & 0xff) << 16 | unsigned(project & 0xff) << 24);
}

// Names of stat and mknod until glibc 2.33.
RNICSIM_EXPORT int __xstat(int, const char* path, struct stat* result) { return ::stat(path, result); }
RNICSIM_EXPORT int __xstat64(int, const char* path, struct stat64* result) { return ::stat64(path, result); }
RNICSIM_EXPORT int __lxstat(int, const char* path, struct stat* result) { return ::lstat(path, result); }
RNICSIM_EXPORT int __lxstat64(int, const char* path, struct stat64* result) { return ::lstat64(path, result); }
RNICSIM_EXPORT int __fxstatat(int, int folder, const char* path, struct stat* result, int flags) {
  return ::fstatat(folder, path, result, flags);
}
RNICSIM_EXPORT int __fxstatat64(int, int folder, const char* path, struct stat64* result, int flags) {
  return ::fstatat64(folder, path, result, flags);
}
RNICSIM_EXPORT int __xmknod(int, const char* path, mode_t mode, dev_t* device) { return ::mknod(path, mode, *device); }
RNICSIM_EXPORT int __xmknodat(int, int folder, const char* path, mode_t mode, dev_t* device) {
  return ::mknodat(folder, path, mode, *device);
}

// --- Working folder.

RNICSIM_PATH_CALL(int, chdir, Last::followed, (const char* path))
RNICSIM_EXPORT char* getcwd(char* buffer, size_t size) noexcept {
  char* result = next_getcwd(buffer, size);
  if (result != nullptr) result[hide_host_path(result, strlen(result))] = 0;
  return result;
}
RNICSIM_EXPORT char* getwd(char* buffer) noexcept { return ::getcwd(buffer, PATH_MAX); }
RNICSIM_EXPORT char* get_current_dir_name() noexcept { return ::getcwd(nullptr, 0); }

// --- Create, change, remove.

RNICSIM_PATH_CALL(int, mkdir, Last::itself, (const char* path, mode_t mode), mode)
RNICSIM_PATH_AT_CALL(int, mkdirat, Last::itself, (int folder, const char* path, mode_t mode), mode)
RNICSIM_PATH_CALL(int, mkfifo, Last::itself, (const char* path, mode_t mode), mode)
RNICSIM_PATH_AT_CALL(int, mkfifoat, Last::itself, (int folder, const char* path, mode_t mode), mode)
RNICSIM_PATH_CALL(int, mknod, Last::itself, (const char* path, mode_t mode, dev_t device), mode, device)
RNICSIM_PATH_AT_CALL(int, mknodat, Last::itself, (int folder, const char* path, mode_t mode, dev_t device), mode,
                     device)
RNICSIM_PATH_CALL(int, rmdir, Last::itself, (const char* path))
RNICSIM_PATH_CALL(int, unlink, Last::itself, (const char* path))
RNICSIM_PATH_AT_CALL(int, unlinkat, Last::itself, (int folder, const char* path, int flags), flags)
RNICSIM_PATH_CALL(int, remove, Last::itself, (const char* path))
RNICSIM_PATH_CALL(int, chmod, Last::followed, (const char* path, mode_t mode), mode)
RNICSIM_PATH_AT_CALL(int, fchmodat, last_at(flags), (int folder, const char* path, mode_t mode, int flags), mode, flags)
RNICSIM_EXPORT int lchmod(const char* path, mode_t mode) noexcept {
  return ::fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW);
}
RNICSIM_PATH_CALL(int, chown, Last::followed, (const char* path, uid_t owner, gid_t group), owner, group)
RNICSIM_PATH_CALL(int, lchown, Last::itself, (const char* path, uid_t owner, gid_t group), owner, group)
RNICSIM_PATH_AT_CALL(int, fchownat, last_at(flags), (int folder, const char* path, uid_t owner, gid_t group, int flags),
                     owner, group, flags)
RNICSIM_PATH_CALL(int, truncate, Last::followed, (const char* path, off_t length), length)
RNICSIM_PATH_CALL(int, truncate64, Last::followed, (const char* path, off64_t length), length)
RNICSIM_PATH_CALL(int, utime, Last::followed, (const char* path, const utimbuf* times), times)
RNICSIM_PATH_CALL(int, utimes, Last::followed, (const char* path, const timeval* times), times)
RNICSIM_PATH_CALL(int, lutimes, Last::itself, (const char* path, const timeval* times), times)
RNICSIM_PATH_AT_CALL(int, utimensat, last_at(flags), (int folder, const char* path, const timespec* times, int flags),
                     times, flags)
RNICSIM_PATH_AT_CALL(int, futimesat, Last::followed, (int folder, const char* path, const timeval* times), times)
RNICSIM_PATH_CALL(int, setxattr, Last::followed,
                  (const char* path, const char* name, const void* value, size_t size, int flags), name, value, size,
                  flags)
RNICSIM_PATH_CALL(int, lsetxattr, Last::itself,
                  (const char* path, const char* name, const void* value, size_t size, int flags), name, value, size,
                  flags)
RNICSIM_PATH_CALL(int, removexattr, Last::followed, (const char* path, const char* name), name)
RNICSIM_PATH_CALL(int, lremovexattr, Last::itself, (const char* path, const char* name), name)

// A link keeps the text that it is given, except as LinkText says.
RNICSIM_EXPORT int own_symlink(const char* target, const char* path) asm("symlink");
RNICSIM_NEXT(symlink);
int own_symlink(const char* target, const char* path) {
  const HostPath place(path, Last::itself);
  return next_symlink(LinkText(target, place).get(), place.get());
}
RNICSIM_EXPORT int own_symlinkat(const char* target, int folder, const char* path) asm("symlinkat");
RNICSIM_NEXT(symlinkat);
int own_symlinkat(const char* target, int folder, const char* path) {
  const HostPath place(folder, path, Last::itself);
  return next_symlinkat(LinkText(target, place).get(), folder, place.get());
}

RNICSIM_EXPORT int rename(const char* from, const char* to) noexcept {
  return next_rename(HostPath(from, Last::itself).get(), HostPath(to, Last::itself).get());
}
RNICSIM_EXPORT int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return next_renameat(from_folder, HostPath(from_folder, from, Last::itself).get(), to_folder,
                       HostPath(to_folder, to, Last::itself).get());
}
RNICSIM_EXPORT int renameat2(int from_folder, const char* from, int to_folder, const char* to,
                             unsigned flags) noexcept {
  return next_renameat2(from_folder, HostPath(from_folder, from, Last::itself).get(), to_folder,
                        HostPath(to_folder, to, Last::itself).get(), flags);
}
RNICSIM_EXPORT int link(const char* from, const char* to) noexcept {
  return next_link(HostPath(from, Last::itself).get(), HostPath(to, Last::itself).get());
}
RNICSIM_EXPORT int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  const Last last = (flags & AT_SYMLINK_FOLLOW) != 0 ? Last::followed : Last::itself;
  return next_linkat(from_folder, HostPath(from_folder, from, last).get(), to_folder,
                     HostPath(to_folder, to, Last::itself).get(), flags);
}
