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
RNICSIM_NEXT(popen);
RNICSIM_NEXT(_exit);

namespace rnicsim::clock {
namespace {

struct Child {
  pid_t virtual_pid = 0;
  pid_t real_pid = 0;
};
std::array<Child, 1024> children;

void remember(pid_t virtual_pid, pid_t real_pid) {
  const auto free = std::ranges::find(children, 0, &Child::virtual_pid);
  if (free != children.end()) *free = {virtual_pid, real_pid};
}
void forget(pid_t virtual_pid) {
  const auto found = std::ranges::find(children, virtual_pid, &Child::virtual_pid);
  if (found != children.end()) *found = {};
}

// Tells the simulator of a child and waits until it has attached. Returns the pid that the program may see.
pid_t announce(abi::Call code, pid_t real_pid) {
  abi::ThreadSlot* slot = own_slot();
  if (slot == nullptr) return real_pid;
  if (call(*slot, code, {std::uint64_t(real_pid)}) != 0 || !simulated()) return real_pid;
  const auto virtual_pid = pid_t(slot->value);
  remember(virtual_pid, real_pid);
  return virtual_pid;
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

// Runs `exec`, which returns only if it failed.
template <class Exec>
int replace_image(char* const* environment, Exec exec) {
  abi::ThreadSlot* slot = own_slot();
  if (slot == nullptr) return exec(const_cast<char**>(environment));
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
int spawn_image(pid_t* pid, char* const* environment, Spawn spawn) {
  if (own_slot() == nullptr) return spawn(pid, const_cast<char**>(environment));
  Environment augmented(environment, false);
  restore_library_descriptor();
  pid_t real_pid = 0;
  // The counter's trap would pass to the child and kill it in its loader.
  if (simulated()) untrap_tsc();
  const int error = spawn(&real_pid, augmented.get());
  if (simulated()) trap_tsc();
  if (error != 0) return error;
  const pid_t seen = announce(abi::Call::spawned, real_pid);
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
         std::ranges::find(children, wanted, &Child::virtual_pid) != children.end();
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
  } else if (const auto found = std::ranges::find(children, wanted, &Child::virtual_pid); found != children.end()) {
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
  children = {};
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
  const std::uint64_t wanted = pid > 0 ? std::uint64_t(pid) : 0;
  const int error = call(*slot, abi::Call::wait_child, {wanted, (options & WNOHANG) != 0 ? 1u : 0u});
  if (error != 0) {
    errno = error;
    return -1;
  }
  const auto virtual_pid = pid_t(slot->value);
  if (virtual_pid == 0) return 0;
  const pid_t reaped = next_wait4(pid_t(slot->argument[2]), status, 0, usage);
  forget(virtual_pid);
  return reaped > 0 ? virtual_pid : reaped;
}
RNICSIM_EXPORT pid_t waitpid(pid_t pid, int* status, int options) { return ::wait4(pid, status, options, nullptr); }
RNICSIM_EXPORT pid_t wait(int* status) { return ::wait4(-1, status, 0, nullptr); }
RNICSIM_EXPORT pid_t wait3(int* status, int options, rusage* usage) { return ::wait4(-1, status, options, usage); }

RNICSIM_EXPORT int execve(const char* path, char* const* arguments, char* const* environment) noexcept {
  return replace_image(environment, [&](char** env) { return next_execve(path, arguments, env); });
}
RNICSIM_EXPORT int fexecve(int fd, char* const* arguments, char* const* environment) noexcept {
  return replace_image(environment, [&](char** env) { return next_fexecve(fd, arguments, env); });
}
RNICSIM_EXPORT int execvpe(const char* file, char* const* arguments, char* const* environment) noexcept {
  return replace_image(environment, [&](char** env) { return next_execvpe(file, arguments, env); });
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
  return spawn_image(pid, environment, [&](pid_t* real, char** env) {
    return next_posix_spawn(real, path, actions, attributes, arguments, env);
  });
}
RNICSIM_EXPORT int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                                const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  return spawn_image(pid, environment, [&](pid_t* real, char** env) {
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
  if (simulated()) untrap_tsc();
  FILE* stream = next_popen(command, mode);
  if (simulated()) trap_tsc();
  // The C library does not say which pid: the simulator takes the next child of ours that says hello.
  if (stream != nullptr) announce(abi::Call::spawned, 0);
  return stream;
}

RNICSIM_EXPORT void _exit(int status) {
  announce_exit(status);
  next__exit(status);
  __builtin_unreachable();
}
RNICSIM_EXPORT void _Exit(int status) noexcept { ::_exit(status); }
