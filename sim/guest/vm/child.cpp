// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/vm/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "sim/os/descriptor.h"
#include "sim/os/throw_errno.h"

namespace rnicsim::sim {
namespace {

// Runs in the child, between fork and exec: only async-signal-safe calls.
void become(const ChildProgram& program, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, program.last_signal);
  if (::getppid() != parent) ::_exit(1);
  ::setpgid(0, 0);  // Ctrl-C ends the launcher, which ends its children
  ::signal(SIGPIPE, SIG_DFL);
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  const int output = program.output >= 0 ? program.output : STDERR_FILENO;
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  for (const int fd : program.inherited) ::fcntl(fd, F_SETFD, 0);
}

}  // namespace

Child::Child(const ChildProgram& program) {
  std::vector<char*> arguments;
  for (const auto& word : program.command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int ends[2];  // closed by a successful exec, else carries its errno
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("pipe");
  const Descriptor failure(ends[0]);
  Descriptor report(ends[1]);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw_errno("fork");
  if (pid_ == 0) {
    become(program, parent);
    ::execvp(arguments.front(), arguments.data());
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(report.get(), &error, sizeof error);
    ::_exit(127);
  }
  report.reset();
  int error = 0;
  ssize_t told;
  do told = ::read(failure.get(), &error, sizeof error);
  while (told < 0 && errno == EINTR);
  if (told != ssize_t(sizeof error)) return;
  ::waitpid(pid_, nullptr, 0);
  throw std::system_error(error, std::generic_category(), program.command.front());
}

Child::~Child() { kill(); }

std::optional<int> Child::ended() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_;
}

int Child::wait() {
  int status = 0;
  while (!status_)
    if (::waitpid(pid_, &status, 0) == pid_) status_ = status;
  return *status_;
}

void Child::kill() {
  if (ended()) return;
  ::kill(pid_, SIGKILL);
  wait();
}

std::string describe_end(int wait_status) {
  if (WIFSIGNALED(wait_status))
    return fmt::format("signal {} ({})", WTERMSIG(wait_status), ::strsignal(WTERMSIG(wait_status)));
  return fmt::format("exit status {}", WEXITSTATUS(wait_status));
}

}  // namespace rnicsim::sim
