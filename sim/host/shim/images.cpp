// SPDX-License-Identifier: Apache-2.0
// New images: exec and spawn. The new image must find the simulator, and must be a program that the simulator can
// follow.

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sim/host/kernel/files/host_path.h"
#include "sim/host/kernel/processes/children.h"
#include "sim/host/shim/counter/tsc.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(execve);
RNICSIM_NEXT(execvpe);
RNICSIM_NEXT(fexecve);
RNICSIM_NEXT(execveat);
RNICSIM_NEXT(posix_spawn);
RNICSIM_NEXT(posix_spawnp);
RNICSIM_NEXT(posix_spawn_file_actions_addopen);
RNICSIM_NEXT(posix_spawn_file_actions_addclose);
RNICSIM_NEXT(posix_spawn_file_actions_addclosefrom_np);
RNICSIM_NEXT(posix_spawn_file_actions_adddup2);
RNICSIM_NEXT(posix_spawn_file_actions_addchdir_np);

namespace rnicsim::clock {
namespace {

constexpr int kLibrariesFlags = O_PATH | O_DIRECTORY;

// False: the simulator cannot follow a process into the file, and has printed the reason. True without a file, because
// the system's own error tells more.
bool can_execute(int fd) {
  abi::ThreadSlot* slot = own_slot();
  // valgrind is an image that cannot be followed, and runs the program all the same.
  if (fd < 0 || slot == nullptr || tool() != Tool::none || !send_descriptors({&fd, 1})) return true;
  return call(*slot, abi::Call::check_image) == 0;
}
bool can_execute(int folder, const char* path) {
  const int saved = errno;
  const int fd = ::openat(folder, path, O_PATH | O_CLOEXEC);
  const bool can = can_execute(fd);
  if (fd >= 0) ::close(fd);
  errno = saved;
  return can;
}

// The file that execvpe() and posix_spawnp() would execute; empty: none.
std::string search_path(const char* file) {
  if (strchr(file, '/') != nullptr || *file == 0) return file;
  const char* path = ::getenv("PATH");
  const std::string folders = path != nullptr ? path : "/bin:/usr/bin";
  for (std::size_t start = 0; start <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', start), folders.size());
    const std::string folder = folders.substr(start, end - start);
    const std::string candidate = folder.empty() ? file : folder + "/" + file;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    start = end + 1;
  }
  return {};
}

// Calls `take` with each entry of a list in the form of LD_PRELOAD.
template <class Take>
void each_preload(std::string_view list, Take take) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(": "), list.size());
    if (end != 0) take(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

// True: this library, in any folder. A launcher may pass on the path of another host.
bool is_this_library(std::string_view path) { return path.substr(path.rfind('/') + 1) == "librnicsim_os.so"; }

// Libraries that a program preloads into its child come before this library, and call it as the next one.
std::string preloads(std::string_view given, std::string_view ours) {
  std::string result;
  each_preload(given, [&](std::string_view entry) {
    if (!is_this_library(entry)) result.append(entry).append(":");
  });
  each_preload(ours, [&](std::string_view entry) {
    if (is_this_library(entry)) result.append(entry);
  });
  return result;
}

// The program's own search path behind the libraries' folder, which comes first in `ours`. Empty entries mean the
// working folder, and stay.
std::string library_path(std::string_view given, std::string_view ours) {
  const std::string_view folder = ours.substr(0, ours.find(':'));
  std::string result(folder);
  for (bool more = !given.empty(); more;) {
    const std::size_t end = given.find(':');
    const std::string_view entry = given.substr(0, end);
    if (entry != folder) result.append(":").append(entry);
    more = end != given.npos;
    if (more) given.remove_prefix(end + 1);
  }
  return result;
}

// The environment for a new image: the parent's, with the variables by which the image finds the simulator.
class Environment {
 public:
  Environment(char* const* given, bool same_process) {
    std::string_view preloaded;
    std::string_view searched;
    for (; given != nullptr && *given != nullptr; ++given) {
      const bool ours = std::ranges::any_of(kVariables, [&](const char* name) { return names(*given, name); });
      if (!ours && !names(*given, "RNICSIM_EXEC")) pointers_.push_back(*given);
      if (names(*given, kPreload)) preloaded = *given + strlen(kPreload) + 1;
      if (names(*given, kLibraryPath)) searched = *given + strlen(kLibraryPath) + 1;
    }
    for (const char* name : kVariables) {
      const char* value = variable(name);
      if (value == nullptr) continue;
      std::string whole = value;
      if (strcmp(name, kPreload) == 0) whole = preloads(preloaded, value);
      if (strcmp(name, kLibraryPath) == 0) whole = library_path(searched, value);
      strings_.push_back(std::string(name) + "=" + whole);
    }
    if (same_process) strings_.push_back("RNICSIM_EXEC=1");
    for (std::string& string : strings_) pointers_.push_back(string.data());
    pointers_.push_back(nullptr);
  }
  char** get() { return pointers_.data(); }

 private:
  static constexpr const char* kPreload = "LD_PRELOAD";
  static constexpr const char* kLibraryPath = "LD_LIBRARY_PATH";

  static bool names(const char* entry, const char* name) {
    const std::size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
  }
  std::vector<std::string> strings_;
  std::vector<char*> pointers_;
};

// Before an exec, programs close descriptors that they do not know, or set FD_CLOEXEC: opens the libraries' folder
// again.
void restore_library_descriptor() {
  const char* folder = variable(abi::kLibrariesVariable);
  const long flags = raw_call(SYS_fcntl, abi::kLibraryDescriptor, F_GETFD);
  if (folder == nullptr || flags == 0) return;
  if (flags > 0) {
    raw_call(SYS_fcntl, abi::kLibraryDescriptor, F_SETFD, 0);
    return;
  }
  const int fd = ::open(folder, kLibrariesFlags | O_CLOEXEC);
  raw_call(SYS_dup2, fd, abi::kLibraryDescriptor);
  ::close(fd);
}

// Runs `exec`, which returns only if it fails. `can`: the simulator can follow the new image.
template <class Exec>
int replace_image(bool can, char* const* environment, Exec exec) {
  abi::ThreadSlot* slot = own_slot();
  if (slot == nullptr) return exec(const_cast<char**>(environment));
  if (!can) {
    errno = ENOEXEC;
    return -1;
  }
  Environment augmented(environment, true);
  restore_library_descriptor();
  call(*slot, abi::Call::exec_begin);
  if (simulated()) untrap_tsc();
  const int result = exec(augmented.get());
  const int error = errno;
  if (simulated()) trap_tsc();
  call(*slot, abi::Call::exec_failed);
  errno = error;
  return result;
}

template <class Spawn>
int spawn_image(pid_t* pid, const char* path, char* const* environment, Spawn spawn) {
  if (own_slot() == nullptr) return spawn(pid, const_cast<char**>(environment));
  if (!can_execute(AT_FDCWD, path)) return ENOEXEC;
  Environment augmented(environment, false);
  restore_library_descriptor();
  pid_t real_pid = 0;
  // The child would inherit the trap of the counter, and die of it in its loader.
  if (simulated()) untrap_tsc();
  const int error = spawn(&real_pid, augmented.get());
  if (simulated()) trap_tsc();
  if (error != 0) return error;
  const pid_t seen = announce(abi::Call::spawned, real_pid);
  if (seen < 0) return errno;
  if (pid != nullptr) *pid = seen;
  return 0;
}

// A path that a child opens. A relative path starts at the child's working folder at that time.
class ChildPath {
 public:
  explicit ChildPath(const char* given, bool stands_elsewhere = true)
      : path_(given != nullptr && given[0] != '/' && stands_elsewhere ? nullptr : given), given_(given) {}
  const char* get() const { return path_.get() != nullptr ? path_.get() : given_; }

 private:
  const HostPath path_;
  const char* const given_;
};

std::vector<char*> collect(const char* first, va_list list) {
  std::vector<char*> arguments{const_cast<char*>(first)};
  while (arguments.back() != nullptr) arguments.push_back(va_arg(list, char*));
  return arguments;
}

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int execve(const char* path, char* const* arguments, char* const* environment) noexcept {
  return replace_image(can_execute(AT_FDCWD, path), environment,
                       [&](char** env) { return next_execve(HostPath(path).get(), arguments, env); });
}
RNICSIM_EXPORT int execveat(int folder, const char* path, char* const* arguments, char* const* environment,
                            int flags) noexcept {
  const bool is_itself = *path == 0 && (flags & AT_EMPTY_PATH) != 0;
  const HostPath leads(folder, path, (flags & AT_SYMLINK_NOFOLLOW) != 0 ? Last::itself : Last::followed);
  return replace_image(is_itself ? can_execute(folder) : can_execute(folder, path), environment,
                       [&](char** env) { return next_execveat(folder, leads.get(), arguments, env, flags); });
}
RNICSIM_EXPORT int fexecve(int fd, char* const* arguments, char* const* environment) noexcept {
  return replace_image(can_execute(fd), environment, [&](char** env) { return next_fexecve(fd, arguments, env); });
}
RNICSIM_EXPORT int execvpe(const char* file, char* const* arguments, char* const* environment) noexcept {
  const std::string found = search_path(file);
  return replace_image(can_execute(AT_FDCWD, found.c_str()), environment, [&](char** env) {
    return next_execvpe(found.empty() ? file : HostPath(found.c_str()).get(), arguments, env);
  });
}
RNICSIM_EXPORT int execv(const char* path, char* const* arguments) noexcept {
  return ::execve(path, arguments, environ);
}
RNICSIM_EXPORT int execvp(const char* file, char* const* arguments) noexcept {
  return ::execvpe(file, arguments, environ);
}
RNICSIM_EXPORT int execl(const char* path, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  const auto arguments = collect(first, list);
  va_end(list);
  return ::execv(path, arguments.data());
}
RNICSIM_EXPORT int execlp(const char* file, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  const auto arguments = collect(first, list);
  va_end(list);
  return ::execvp(file, arguments.data());
}
RNICSIM_EXPORT int execle(const char* path, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  const auto arguments = collect(first, list);
  char** environment = va_arg(list, char**);
  va_end(list);
  return ::execve(path, arguments.data(), environment);
}

RNICSIM_EXPORT int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  return spawn_image(pid, path, environment, [&](pid_t* real, char** env) {
    return next_posix_spawn(real, ChildPath(path, actions != nullptr).get(), actions, attributes, arguments, env);
  });
}
RNICSIM_EXPORT int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                                const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  const std::string found = search_path(file);
  return spawn_image(pid, found.c_str(), environment, [&](pid_t* real, char** env) {
    const ChildPath path(found.empty() ? file : found.c_str(), actions != nullptr);
    return next_posix_spawnp(real, path.get(), actions, attributes, arguments, env);
  });
}

// A file that the child opens before it runs the new image.
RNICSIM_EXPORT int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t* actions, int fd, const char* path,
                                                    int flags, mode_t mode) noexcept {
  return next_posix_spawn_file_actions_addopen(actions, fd, ChildPath(path).get(), flags, mode);
}
// The child keeps the descriptors by which it stays on the host.
RNICSIM_EXPORT int posix_spawn_file_actions_addclose(posix_spawn_file_actions_t* actions, int fd) noexcept {
  return is_kept(fd) ? 0 : next_posix_spawn_file_actions_addclose(actions, fd);
}
RNICSIM_EXPORT int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t* actions, int first) noexcept {
  const char* folder = variable(abi::kLibrariesVariable);
  const bool keeps = session() != nullptr && folder != nullptr && first <= abi::kLibraryDescriptor;
  // With a limit so low that the folder could not be opened again at its number, the others are closed one by one.
  if (const long limit = ::sysconf(_SC_OPEN_MAX); keeps && limit >= 0 && limit <= abi::kLibraryDescriptor) {
    int error = 0;
    for (int fd = first; fd < limit && error == 0; ++fd) error = next_posix_spawn_file_actions_addclose(actions, fd);
    return error;
  }
  const int error = next_posix_spawn_file_actions_addclosefrom_np(actions, first);
  if (error != 0 || !keeps) return error;
  return next_posix_spawn_file_actions_addopen(actions, abi::kLibraryDescriptor, folder, kLibrariesFlags, 0);
}
RNICSIM_EXPORT int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t* actions, int fd, int copy) noexcept {
  if (is_kept(fd) || is_kept(copy)) return EBADF;
  return next_posix_spawn_file_actions_adddup2(actions, fd, copy);
}
RNICSIM_EXPORT int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t* actions,
                                                        const char* path) noexcept {
  return next_posix_spawn_file_actions_addchdir_np(actions, ChildPath(path).get());
}
