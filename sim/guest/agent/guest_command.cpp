// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/agent/guest_command.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>

namespace rnicsim::sim {
namespace {

// Shorter sleeps do not count: a process may wait briefly for work of another processor.
constexpr std::chrono::milliseconds kRest{300};

struct Pipe {
  Descriptor read_end, write_end;
};
Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// Runs in the child, between fork and exec.
[[noreturn]] void become_shell(const char* line, int out, int err) {
  ::setsid();
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execl("/bin/sh", "sh", "-c", line, nullptr);
  ::_exit(127);
}

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

template <class Visit>
void each_number_in(const char* path, const Visit& visit) {
  const Folder folder(::opendir(path), ::closedir);
  if (!folder) return;
  while (const dirent* entry = ::readdir(folder.get()))
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') visit(entry->d_name);
}

struct ProcessState {
  char state;
  pid_t session;
};

// State and session of a process or thread, from its file /proc/.../stat. The program's name, in parentheses, may
// contain blanks and parentheses.
std::optional<ProcessState> state_of(const std::string& stat_file) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(stat_file.c_str(), "re"), std::fclose);
  if (!file) return std::nullopt;
  std::array<char, 1024> text{};
  if (std::fgets(text.data(), int(text.size()), file.get()) == nullptr) return std::nullopt;
  const char* rest = std::strrchr(text.data(), ')');
  ProcessState found{};
  int parent = 0, group = 0, session = 0;
  if (rest == nullptr || std::sscanf(rest + 1, " %c %d %d %d", &found.state, &parent, &group, &session) != 4)
    return std::nullopt;
  found.session = session;
  return found;
}

// True: the session has processes, and all their threads sleep or are zombies.
bool sleeps(pid_t session) {
  bool all_sleep = true, any = false;
  each_number_in("/proc", [&](const char* pid) {
    const std::string folder = std::string("/proc/") + pid;
    const auto process = state_of(folder + "/stat");
    if (!process || process->session != session) return;
    any = true;
    each_number_in((folder + "/task").c_str(), [&](const char* thread) {
      const auto state = state_of(folder + "/task/" + thread + "/stat");
      if (state && state->state != 'S' && state->state != 'Z') all_sleep = false;
    });
  });
  return any && all_sleep;
}

std::uint32_t shell_status(int wait_status) {
  return std::uint32_t(WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status));
}

}  // namespace

GuestCommand::GuestCommand(std::uint32_t number, const std::string& line, const Tell& tell)
    : number_(number), tell_(tell) {
  Pipe out = make_pipe(), err = make_pipe();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ == 0) become_shell(line.c_str(), out.write_end.get(), err.write_end.get());
  output_ = std::move(out.read_end);
  errors_ = std::move(err.read_end);
}

void GuestCommand::end(int wait_status) {
  relay_what_is_there(output_, FrameKind::output);
  relay_what_is_there(errors_, FrameKind::errors);
  ended_ = true;
  tell_(FrameKind::ended, number_, number_payload(shell_status(wait_status)));
}

void GuestCommand::signal(int number) const {
  if (!ended_) ::kill(-pid_, number);
}

void GuestCommand::add_to(std::vector<pollfd>& watched) const {
  for (const Descriptor* from : {&output_, &errors_})
    if (*from) watched.push_back({from->get(), POLLIN, 0});
}

void GuestCommand::relay(int descriptor) {
  if (output_ && descriptor == output_.get() && relay_some(output_, FrameKind::output)) output_.reset();
  if (errors_ && descriptor == errors_.get() && relay_some(errors_, FrameKind::errors)) errors_.reset();
}

bool GuestCommand::relay_some(const Descriptor& from, FrameKind kind) {
  std::array<char, 16 * 1024> buffer;
  ssize_t got;
  do got = ::read(from.get(), buffer.data(), buffer.size());
  while (got < 0 && errno == EINTR);
  if (got <= 0) return true;
  tell_(kind, number_, {buffer.data(), std::size_t(got)});
  return false;
}

// Sends the bytes that are in the pipe now. A process that outlives the command may write more; relay() sends them.
void GuestCommand::relay_what_is_there(Descriptor& from, FrameKind kind) {
  if (!from) return;
  int there = 0;
  if (::ioctl(from.get(), FIONREAD, &there) != 0) return;
  std::array<char, 16 * 1024> buffer;
  while (there > 0) {
    const ssize_t got = ::read(from.get(), buffer.data(), std::min(buffer.size(), std::size_t(there)));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    tell_(kind, number_, {buffer.data(), std::size_t(got)});
    there -= int(got);
  }
}

void GuestCommand::look_whether_settled(std::chrono::steady_clock::time_point now) {
  if (is_settled()) return;
  if (!sleeps(pid_)) {
    asleep_since_.reset();
  } else if (!asleep_since_) {
    asleep_since_ = now;
  } else if (now - *asleep_since_ >= kRest) {
    settled_ = true;
    tell_(FrameKind::settled, number_, {});
  }
}

}  // namespace rnicsim::sim
