// SPDX-License-Identifier: Apache-2.0
// Temporary files and named memory. The C library forms their names from the machine's clock and random numbers. On a
// simulated host the names are drawn from the run's seed, and the files lie in folders of the host.

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#include "sim/host/kernel/files/host_path.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/session.h"

using rnicsim::clock::HostPath;

RNICSIM_NEXT(mkostemps);
RNICSIM_NEXT(mkdtemp);
RNICSIM_NEXT(mktemp);
RNICSIM_NEXT(tmpfile);
RNICSIM_NEXT(tmpnam);
RNICSIM_NEXT(tempnam);
RNICSIM_NEXT(shm_open);
RNICSIM_NEXT(shm_unlink);
RNICSIM_NEXT(sem_open);
RNICSIM_NEXT(sem_unlink);

namespace {

constexpr char kBlanks[] = "XXXXXX";
constexpr std::size_t kBlankCount = sizeof kBlanks - 1;
constexpr int kMostTries = 10'000;

bool is_on_host() { return rnicsim::clock::session() != nullptr; }

// The blanks in a template that ends with a suffix of `suffix` characters; nullptr: none.
char* blanks_of(char* name, int suffix) {
  const std::size_t length = strlen(name);
  if (suffix < 0 || length < std::size_t(suffix) + kBlankCount) return nullptr;
  char* blanks = name + length - std::size_t(suffix) - kBlankCount;
  return memcmp(blanks, kBlanks, kBlankCount) == 0 ? blanks : nullptr;
}

// Fills the blanks until `make` succeeds, or fails for another reason than EEXIST.
template <class Make>
int make_named(char* name, int suffix, Make make) {
  static constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  char* blanks = blanks_of(name, suffix);
  if (blanks == nullptr) {
    errno = EINVAL;
    return -1;
  }
  for (int i = 0; i < kMostTries; ++i) {
    std::uint64_t chance = 0;
    if (::getrandom(&chance, sizeof chance, 0) != ssize_t(sizeof chance)) return -1;
    for (std::size_t at = 0; at < kBlankCount; ++at, chance /= sizeof kLetters - 1)
      blanks[at] = kLetters[chance % (sizeof kLetters - 1)];
    const int made = make(name);
    if (made >= 0 || errno != EEXIST) return made;
  }
  errno = EEXIST;
  return -1;
}

int make_file(char* name, int suffix, int flags) {
  return make_named(name, suffix, [&](const char* path) {
    return ::open(path, (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL, 0600);
  });
}

// 0 if the name is free.
int find_free(const char* path) {
  struct stat status;
  if (::lstat(path, &status) == 0) errno = EEXIST;
  return errno == ENOENT ? 0 : -1;
}

// The path on the host of shared memory named "/name". False, with errno: not a valid name.
bool memory_path(char (&path)[PATH_MAX], const char* name) {
  while (*name == '/') ++name;
  const int length = snprintf(path, sizeof path, "/dev/shm/%s", name);
  errno = length >= int(sizeof path) || strlen(name) > NAME_MAX ? ENAMETOOLONG : EINVAL;
  return *name != 0 && strchr(name, '/') == nullptr && length < int(sizeof path) && strlen(name) <= NAME_MAX;
}

class SemaphoreName {
 public:
  explicit SemaphoreName(const char* given) : name_(given) {
    if (!is_on_host()) return;
    while (*given == '/') ++given;
    if (snprintf(buffer_, sizeof buffer_, "/%s%s", rnicsim::clock::host_tag(), given) < int(sizeof buffer_))
      name_ = buffer_;
  }
  const char* get() const { return name_; }

 private:
  const char* name_;
  char buffer_[NAME_MAX];
};

}  // namespace

RNICSIM_EXPORT int mkostemps(char* name, int suffix, int flags) {
  return is_on_host() ? make_file(name, suffix, flags) : next_mkostemps(name, suffix, flags);
}
RNICSIM_EXPORT int mkostemps64(char* name, int suffix, int flags) { return ::mkostemps(name, suffix, flags); }
RNICSIM_EXPORT int mkstemps(char* name, int suffix) { return ::mkostemps(name, suffix, 0); }
RNICSIM_EXPORT int mkstemps64(char* name, int suffix) { return ::mkostemps(name, suffix, 0); }
RNICSIM_EXPORT int mkostemp(char* name, int flags) { return ::mkostemps(name, 0, flags); }
RNICSIM_EXPORT int mkostemp64(char* name, int flags) { return ::mkostemps(name, 0, flags); }
RNICSIM_EXPORT int mkstemp(char* name) { return ::mkostemps(name, 0, 0); }
RNICSIM_EXPORT int mkstemp64(char* name) { return ::mkostemps(name, 0, 0); }

RNICSIM_EXPORT char* mkdtemp(char* name) noexcept {
  if (!is_on_host()) return next_mkdtemp(name);
  return make_named(name, 0, [](const char* path) { return ::mkdir(path, 0700); }) == 0 ? name : nullptr;
}
// Returns an empty name if it fails.
RNICSIM_EXPORT char* mktemp(char* name) noexcept {
  if (!is_on_host()) return next_mktemp(name);
  if (make_named(name, 0, find_free) != 0) *name = 0;
  return name;
}

RNICSIM_EXPORT FILE* tmpfile() {
  if (!is_on_host()) return next_tmpfile();
  char name[] = "/tmp/tmpfXXXXXX";
  const int fd = ::mkostemps(name, 0, O_CLOEXEC);
  if (fd < 0) return nullptr;
  ::unlink(name);
  return ::fdopen(fd, "w+");
}
RNICSIM_EXPORT FILE* tmpfile64() { return ::tmpfile(); }
RNICSIM_EXPORT char* tmpnam(char* result) noexcept {
  if (!is_on_host()) return next_tmpnam(result);
  static char own[L_tmpnam];
  char name[] = "/tmp/fileXXXXXX";
  static_assert(sizeof name <= L_tmpnam);
  if (*::mktemp(name) == 0) return nullptr;
  return strcpy(result != nullptr ? result : own, name);
}
RNICSIM_EXPORT char* tempnam(const char* folder, const char* prefix) noexcept {
  if (!is_on_host()) return next_tempnam(folder, prefix);
  char name[PATH_MAX];
  const bool usable = folder != nullptr && ::access(folder, W_OK | X_OK) == 0;
  snprintf(name, sizeof name, "%s/%.5sXXXXXX", usable ? folder : P_tmpdir, prefix != nullptr ? prefix : "file");
  return *::mktemp(name) != 0 ? ::strdup(name) : nullptr;
}

RNICSIM_EXPORT int shm_open(const char* name, int flags, mode_t mode) {
  if (!is_on_host()) return next_shm_open(name, flags, mode);
  char path[PATH_MAX];
  return memory_path(path, name) ? ::open(path, flags | O_NOFOLLOW | O_CLOEXEC, mode) : -1;
}
RNICSIM_EXPORT int shm_unlink(const char* name) {
  if (!is_on_host()) return next_shm_unlink(name);
  char path[PATH_MAX];
  if (!memory_path(path, name)) return errno = ENOENT, -1;
  return ::unlink(path);
}

// A named semaphore is the C library's, which knows it by its place in memory; its name belongs to the host.
RNICSIM_EXPORT sem_t* sem_open(const char* name, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? mode_t(va_arg(list, unsigned)) : 0;
  const unsigned value = (flags & O_CREAT) != 0 ? va_arg(list, unsigned) : 0;
  va_end(list);
  const SemaphoreName own(name);
  return next_sem_open(own.get(), flags, mode, value);
}
RNICSIM_EXPORT int sem_unlink(const char* name) { return next_sem_unlink(SemaphoreName(name).get()); }
