// SPDX-License-Identifier: Apache-2.0
// Commands for the shell. The C library's own functions would create children, and wait for them, without the
// simulator.

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "sim/host/shim/cancellation.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(popen);
RNICSIM_NEXT(pclose);

namespace rnicsim::clock {
namespace {

struct Piped {
  FILE* stream;
  pid_t pid;
};
constinit std::vector<Piped> piped;

FILE* open_pipe(const char* command, bool reads, bool close_on_exec) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return nullptr;
  const int ours = ends[reads ? 0 : 1];
  const int theirs = ends[reads ? 1 : 0];
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  // The child does not inherit the streams of earlier calls.
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

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim::clock;

RNICSIM_EXPORT int system(const char* command) {
  if (command == nullptr) return 1;
  const Uncancelled to_its_end;
  const char* arguments[] = {"sh", "-c", command, nullptr};
  pid_t pid;
  sigset_t child_signal, before;
  ::sigemptyset(&child_signal);
  ::sigaddset(&child_signal, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &child_signal, &before);
  int status = -1;
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigmask(&attributes, &before);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int error = ::posix_spawn(&pid, "/bin/sh", nullptr, &attributes, const_cast<char**>(arguments), environ);
  ::posix_spawnattr_destroy(&attributes);
  while (error == 0 && ::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) errno = error;
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
  const Uncancelled as_by_the_c_library;
  const pid_t pid = found->pid;
  piped.erase(found);
  ::fclose(stream);
  int status = -1;
  pid_t reaped;
  do reaped = ::waitpid(pid, &status, 0);
  while (reaped < 0 && errno == EINTR);
  return reaped < 0 ? -1 : status;
}
