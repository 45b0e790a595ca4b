// Processes: virtual pids, fork, exec, spawn, wait and exit. Each new process and each new image attaches by itself;
// the one that made it tells the simulator whom to expect, so that the order never depends on the real scheduler.

#include "verbs/clock/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "verbs/clock/attach.h"
#include "verbs/clock/next.h"
#include "verbs/clock/tsc.h"
#include "verbs/clock/turn.h"
#include "verbs/port/raw_call.h"

RNICSIM_NEXT(getpid);
RNICSIM_NEXT(getppid);
RNICSIM_NEXT(setpgid);
RNICSIM_NEXT(fork);
RNICSIM_NEXT(wait4);
RNICSIM_NEXT(execve);
RNICSIM_NEXT(execvpe);
RNICSIM_NEXT(fexecve);
RNICSIM_NEXT(posix_spawn);
RNICSIM_NEXT(posix_spawnp);
RNICSIM_NEXT(execveat);
RNICSIM_NEXT(popen);
RNICSIM_NEXT(pclose);
RNICSIM_NEXT(_exit);

namespace rnicsim::clock {
namespace {

struct Child {
  pid_t virtual_pid = 0;  // as the program sees it
  pid_t real_pid = 0;
  bool outside = false;   // it never attached: the program sees its real pid
};

// Those that have not been waited for. Signal handlers look here, too: what is there stays where it is, and is taken
// for the next child.
class Children {
 public:
  void remember(const Child& child) {
    if (Child* free = find(0)) {
      *free = child;
      return;
    }
    Block* last = &first_;
    while (last->next != nullptr) last = last->next;
    auto* more = new Block;
    more->entries.front() = child;
    last->next = more;
  }
  void forget(pid_t virtual_pid) {
    if (Child* child = find(virtual_pid)) *child = {};
  }
  Child* find(pid_t virtual_pid) {
    return find_if([&](const Child& child) { return child.virtual_pid == virtual_pid; });
  }
  Child* find_outside() {
    return find_if([](const Child& child) { return child.outside; });
  }
  // Of a new process: it has none.
  void clear() {
    for (Block* block = &first_; block != nullptr; block = block->next) block->entries = {};
  }

 private:
  struct Block {
    std::array<Child, 256> entries;
    std::atomic<Block*> next{nullptr};
  };
  template <class Wanted>
  Child* find_if(Wanted wanted) {
    for (Block* block = &first_; block != nullptr; block = block->next)
      if (const auto found = std::ranges::find_if(block->entries, wanted); found != block->entries.end())
        return &*found;
    return nullptr;
  }
  Block first_;
};
Children children;

// Tells the simulator of a child and waits until it has attached. Returns the pid that the program may see; -1 if there
// is no room for it.
pid_t announce(abi::Call code, pid_t real_pid) {
  abi::ThreadSlot* slot = own_slot();
  if (slot == nullptr) return real_pid;
  const int error = call(*slot, code, {std::uint64_t(real_pid)});
  if (!simulated()) return real_pid;
  if (error == EAGAIN) {
    raw_call(SYS_kill, real_pid, SIGKILL);
    next_wait4(real_pid, nullptr, 0, nullptr);
    errno = EAGAIN;
    return -1;
  }
  const pid_t seen = error == 0 ? pid_t(slot->value) : real_pid;
  children.remember({seen, real_pid, error != 0});
  return seen;
}

// Whether the simulator can follow a process into the file; if not, it has said why. Where there is no file, the
// system's own error tells more.
bool can_execute(int fd) {
  abi::ThreadSlot* slot = own_slot();
  // valgrind is such an image, and runs the program all the same.
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

// The file that execvpe and posix_spawnp would execute; empty if there is none.
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

// What a new image needs to find its way back to the simulator, whatever environment its parent made for it.
class Environment {
 public:
  Environment(char* const* given, bool same_process) {
    for (; given != nullptr && *given != nullptr; ++given) {
      const bool ours = std::ranges::any_of(kVariables, [&](const char* name) { return names(*given, name); });
      if (!ours && !names(*given, "RNICSIM_EXEC")) pointers_.push_back(*given);
    }
    for (const char* name : kVariables)
      if (const char* value = variable(name)) strings_.push_back(std::string(name) + "=" + value);
    if (same_process) strings_.push_back("RNICSIM_EXEC=1");
    for (std::string& string : strings_) pointers_.push_back(string.data());
    pointers_.push_back(nullptr);
  }
  char** get() { return pointers_.data(); }

 private:
  static bool names(const char* entry, const char* name) {
    const std::size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
  }
  std::vector<std::string> strings_;
  std::vector<char*> pointers_;
};

// Programs close descriptors that they do not know before an exec.
void restore_library_descriptor() {
  const char* folder = variable(abi::kLibrariesVariable);
  if (folder == nullptr || ::fcntl(abi::kLibraryDescriptor, F_GETFD) >= 0) return;
  const int fd = ::open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  ::dup2(fd, abi::kLibraryDescriptor);
  ::close(fd);
}

// Runs `exec`, which returns only if it failed. `can` is whether the simulator can follow.
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
  // The counter's trap would pass to the child and kill it in its loader.
  if (simulated()) untrap_tsc();
  const int error = spawn(&real_pid, augmented.get());
  if (simulated()) trap_tsc();
  if (error != 0) return error;
  const pid_t seen = announce(abi::Call::spawned, real_pid);
  if (seen < 0) return errno;
  if (pid != nullptr) *pid = seen;
  return 0;
}

std::vector<char*> collect(const char* first, va_list list) {
  std::vector<char*> arguments{const_cast<char*>(first)};
  while (arguments.back() != nullptr) arguments.push_back(va_arg(list, char*));
  return arguments;
}

void announce_exit(int status) {
  if (abi::ThreadSlot* slot = simulated_slot()) leave(*slot, abi::Call::process_exit, {std::uint64_t(status)});
}

constexpr pid_t kInit = 1;

// Itself, its parent or a child, or the group of one of them.
bool is_known(pid_t pid) {
  if (pid == 0) return true;
  const pid_t wanted = pid < 0 ? -pid : pid;
  if (wanted == kInit) return false;
  const auto& header = session()->header();
  return wanted == pid_t(header.virtual_pid) || wanted == pid_t(header.virtual_parent_pid) ||
         children.find(wanted) != nullptr;
}

// Sends a signal by `send`, which gets the real pid. The real kernel delivers it when it pleases, not in simulated
// time, so the simulator is told when it goes to others; first, for it may end this process too.
template <class Send>
int send_signal(pid_t pid, int signal, Send send) {
  if (!simulated()) return int(send(pid));
  // The simulator, and what else runs on this machine, is not of the simulated host.
  if (!is_known(pid)) {
    errno = pid == -1 || pid == kInit ? EPERM : ESRCH;
    return -1;
  }
  const pid_t real = real_pid_of(pid);
  // Signal 0 only asks whether there is somebody.
  const std::uint32_t sent = signal != 0 && real != pid_t(checked_call(SYS_getpid)) ? 1 : 0;
  const std::atomic_ref counter(session()->header().signals_sent);
  counter.fetch_add(sent);
  const auto result = int(send(real));
  if (result != 0) counter.fetch_sub(sent);
  return result;
}

// For a child that is not of the simulation: it died before it could attach, or has left. Whoever waits for it and
// nobody else waits in the real kernel. 0: the simulator has the answer.
pid_t wait_outside(pid_t pid, int* status, int options, rusage* usage) {
  const Child* child = pid > 0 ? children.find(pid) : children.find_outside();
  if (child == nullptr || !child->outside) return 0;
  const pid_t reaped = next_wait4(child->real_pid, status, pid > 0 ? options : options | WNOHANG, usage);
  if (reaped > 0) children.forget(reaped);
  return reaped > 0 || pid > 0 ? reaped : 0;
}

// --- popen: the C library's own would make its child, and wait for it, behind the simulator's back.
struct Piped {
  FILE* stream;
  pid_t pid;
};
std::vector<Piped> piped;

FILE* open_pipe(const char* command, bool reads, bool close_on_exec) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return nullptr;
  const int ours = ends[reads ? 0 : 1];
  const int theirs = ends[reads ? 1 : 0];
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  // Streams of earlier calls are not the new child's.
  for (const Piped& other : piped) ::posix_spawn_file_actions_addclose(&actions, ::fileno(other.stream));
  ::posix_spawn_file_actions_adddup2(&actions, theirs, reads ? STDOUT_FILENO : STDIN_FILENO);
  const char* arguments[] = {"sh", "-c", command, nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, "/bin/sh", &actions, nullptr, const_cast<char**>(arguments), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(theirs);
  FILE* stream = error == 0 ? ::fdopen(ours, reads ? "r" : "w") : nullptr;
  if (stream == nullptr) {
    ::close(ours);
    if (error != 0) errno = error;
    return nullptr;
  }
  if (!close_on_exec) ::fcntl(ours, F_SETFD, 0);
  piped.push_back({stream, pid});
  return stream;
}

// Registered first, so that it runs last: the program's own exit handlers still have their clock.
void at_exit(int status, void*) { announce_exit(status); }
__attribute__((constructor)) void register_exit() { ::on_exit(at_exit, nullptr); }

}  // namespace

pid_t real_pid_of(pid_t pid) {
  const bool is_group = pid < 0;
  const pid_t wanted = is_group ? -pid : pid;
  pid_t real = wanted;
  if (wanted == pid_t(session()->header().virtual_pid)) {
    real = pid_t(checked_call(SYS_getpid));
  } else if (wanted == pid_t(session()->header().virtual_parent_pid)) {
    real = pid_t(checked_call(SYS_getppid));
  } else if (const Child* found = children.find(wanted)) {
    real = found->real_pid;
  }
  return is_group ? -real : real;
}

long signal_thread(pid_t process, pid_t thread, int signal) {
  const auto own = pid_t(session()->header().virtual_pid);
  for (std::uint32_t index = 0; process == own && index < abi::kMaxThreads; ++index) {
    const abi::ThreadSlot& slot = session()->slot(index);
    if (slot.tid != 0 && pid_t(slot.virtual_tid) == thread)
      return checked_call(SYS_tgkill, raw_call(SYS_getpid), slot.tid, signal);
  }
  errno = ESRCH;
  return -1;
}

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT pid_t getpid() noexcept {
  return simulated() ? pid_t(session()->header().virtual_pid) : next_getpid();
}
RNICSIM_EXPORT pid_t getppid() noexcept {
  return simulated() ? pid_t(session()->header().virtual_parent_pid) : next_getppid();
}

RNICSIM_EXPORT pid_t fork() noexcept {
  if (own_slot() == nullptr) return next_fork();
  const auto parent = pid_t(checked_call(SYS_getpid));
  const pid_t child = next_fork();
  if (child < 0) return child;
  if (child > 0) return announce(abi::Call::forked, child);
  abandon();
  children.clear();
  piped.clear();
  attach(abi::Hello::kFork, std::uint32_t(parent));
  return 0;
}
// The child of a vfork shares its parent's memory, and so its slot: it gets memory of its own instead.
RNICSIM_EXPORT pid_t vfork() noexcept { return ::fork(); }

RNICSIM_EXPORT int setpgid(pid_t pid, pid_t group) noexcept {
  if (!simulated()) return next_setpgid(pid, group);
  return next_setpgid(real_pid_of(pid), real_pid_of(group));
}

// A handler may send a signal too, with or without its thread's turn: these make no call, and look nothing up at first
// use.
RNICSIM_EXPORT int kill(pid_t pid, int signal) noexcept {
  return send_signal(pid, signal, [&](pid_t real) { return checked_call(SYS_kill, real, signal); });
}
RNICSIM_EXPORT int killpg(pid_t group, int signal) noexcept {
  if (group >= 0) return ::kill(-group, signal);
  errno = EINVAL;
  return -1;
}
RNICSIM_EXPORT int sigqueue(pid_t pid, int signal, const sigval value) noexcept {
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = SI_QUEUE;
  info.si_pid = pid_t(checked_call(SYS_getpid));
  info.si_uid = ::getuid();
  info.si_value = value;
  return send_signal(pid, signal, [&](pid_t real) { return checked_call(SYS_rt_sigqueueinfo, real, signal, &info); });
}

RNICSIM_EXPORT pid_t wait4(pid_t pid, int* status, int options, rusage* usage) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_wait4(pid, status, options, usage);
  charge(*slot, abi::CpuCost::system_call);
  if (const pid_t reaped = wait_outside(pid, status, options, usage); reaped != 0) return reaped;
  const std::uint64_t wanted = pid > 0 ? std::uint64_t(pid) : 0;
  const int error = call(*slot, abi::Call::wait_child, {wanted, (options & WNOHANG) != 0 ? 1u : 0u});
  const Child* outside = error == ECHILD && pid <= 0 ? children.find_outside() : nullptr;
  if (outside != nullptr) return wait_outside(outside->real_pid, status, options, usage);
  if (error != 0) {
    errno = error;
    return -1;
  }
  const auto virtual_pid = pid_t(slot->value);
  if (virtual_pid == 0) return 0;
  const pid_t reaped = next_wait4(pid_t(slot->argument[2]), status, 0, usage);
  children.forget(virtual_pid);
  return reaped > 0 ? virtual_pid : reaped;
}
RNICSIM_EXPORT pid_t waitpid(pid_t pid, int* status, int options) { return ::wait4(pid, status, options, nullptr); }
RNICSIM_EXPORT pid_t wait(int* status) { return ::wait4(-1, status, 0, nullptr); }
RNICSIM_EXPORT pid_t wait3(int* status, int options, rusage* usage) { return ::wait4(-1, status, options, usage); }

RNICSIM_EXPORT int execve(const char* path, char* const* arguments, char* const* environment) noexcept {
  return replace_image(can_execute(AT_FDCWD, path), environment,
                       [&](char** env) { return next_execve(path, arguments, env); });
}
RNICSIM_EXPORT int execveat(int folder, const char* path, char* const* arguments, char* const* environment,
                            int flags) noexcept {
  const bool is_itself = *path == 0 && (flags & AT_EMPTY_PATH) != 0;
  return replace_image(is_itself ? can_execute(folder) : can_execute(folder, path), environment,
                       [&](char** env) { return next_execveat(folder, path, arguments, env, flags); });
}
RNICSIM_EXPORT int fexecve(int fd, char* const* arguments, char* const* environment) noexcept {
  return replace_image(can_execute(fd), environment, [&](char** env) { return next_fexecve(fd, arguments, env); });
}
RNICSIM_EXPORT int execvpe(const char* file, char* const* arguments, char* const* environment) noexcept {
  return replace_image(can_execute(AT_FDCWD, search_path(file).c_str()), environment,
                       [&](char** env) { return next_execvpe(file, arguments, env); });
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
    return next_posix_spawn(real, path, actions, attributes, arguments, env);
  });
}
RNICSIM_EXPORT int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                                const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  return spawn_image(pid, search_path(file).c_str(), environment, [&](pid_t* real, char** env) {
    return next_posix_spawnp(real, file, actions, attributes, arguments, env);
  });
}

RNICSIM_EXPORT int system(const char* command) {
  if (command == nullptr) return 1;
  const char* arguments[] = {"sh", "-c", command, nullptr};
  pid_t pid;
  if (::posix_spawn(&pid, "/bin/sh", nullptr, nullptr, const_cast<char**>(arguments), environ) != 0) return -1;
  int status = -1;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

RNICSIM_EXPORT FILE* popen(const char* command, const char* mode) {
  if (own_slot() == nullptr) return next_popen(command, mode);
  const bool close_on_exec = strchr(mode, 'e') != nullptr;
  if (*mode == 'r' || *mode == 'w') return open_pipe(command, *mode == 'r', close_on_exec);
  errno = EINVAL;
  return nullptr;
}
RNICSIM_EXPORT int pclose(FILE* stream) {
  const auto found = std::ranges::find(piped, stream, &Piped::stream);
  if (found == piped.end()) return next_pclose(stream);
  const pid_t pid = found->pid;
  piped.erase(found);
  ::fclose(stream);
  int status = -1;
  pid_t reaped;
  do reaped = ::waitpid(pid, &status, 0);
  while (reaped < 0 && errno == EINTR);
  return reaped < 0 ? -1 : status;
}

RNICSIM_EXPORT void _exit(int status) {
  announce_exit(status);
  next__exit(status);
  __builtin_unreachable();
}
RNICSIM_EXPORT void _Exit(int status) noexcept { ::_exit(status); }
