// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/native/native_thread.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include <cstdlib>
#include <fstream>

namespace rnicsim::sim {
namespace {

// Fields behind the name in "pid (name) state parent ...". The name may contain any character; its parenthesis is the
// last.
std::string behind_name(const std::string& stat) {
  const auto end = stat.rfind(") ");
  return end == std::string::npos ? "" : stat.substr(end + 2);
}

}  // namespace

std::string NativeThread::read(const char* file) const {
  std::ifstream in(fmt::format("/proc/{}/task/{}/{}", process_, thread_, file));
  std::string line;
  std::getline(in, line);
  return line;
}

bool NativeThread::exists() const { return ::tgkill(process_, thread_, 0) == 0; }

// A thread that lost its processor just before a sleep, for example in a wait4() that need not wait, has state S but
// is runnable; its "syscall" file says "running".
bool NativeThread::sleeps() const {
  return behind_name(read("stat")).starts_with('S') && !read("syscall").starts_with("running");
}

bool NativeThread::is_stopped() const { return behind_name(read("stat")).starts_with('T'); }

std::string NativeThread::system_call() const {
  const std::string line = read("syscall");
  return "system call " + line.substr(0, line.find(' '));
}

std::map<std::string, std::uint64_t> NativeThread::signal_sets() const {
  std::map<std::string, std::uint64_t> sets;
  std::ifstream in(fmt::format("/proc/{}/task/{}/status", process_, thread_));
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(':');
    if ((line.starts_with("Sig") || line.starts_with("ShdPnd")) && line.find('/') == std::string::npos)
      sets[line.substr(0, colon)] = std::stoull(line.substr(colon + 1), nullptr, 16);
  }
  return sets;
}

bool NativeThread::has_signal(const char* set, int signal) const {
  const auto sets = signal_sets();
  const auto found = sets.find(set);
  return found != sets.end() && (found->second >> (signal - 1) & 1) != 0;
}
bool NativeThread::catches(int signal) const { return has_signal("SigCgt", signal); }
bool NativeThread::awaits(int signal) const { return has_signal("SigPnd", signal); }

void NativeThread::send(int signal) const { ::tgkill(process_, thread_, signal); }

namespace {

std::string stat_of(pid_t process) {
  std::ifstream in(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(in, line);
  return behind_name(line);
}

}  // namespace

pid_t parent_of(pid_t process) {
  const std::string fields = stat_of(process);
  return fields.size() < 3 ? 0 : pid_t(std::strtol(fields.c_str() + 2, nullptr, 10));
}

int exit_status_of(pid_t process) {
  // exit_code, the last field since Linux 3.5.
  const std::string fields = stat_of(process);
  const auto last = fields.rfind(' ');
  return last == std::string::npos ? 0 : int(std::strtol(fields.c_str() + last + 1, nullptr, 10));
}

uid_t user_of(pid_t process) {
  struct stat folder {};
  ::stat(fmt::format("/proc/{}", process).c_str(), &folder);
  return folder.st_uid;
}

std::chrono::microseconds processor_time_of(pid_t process) {
  clockid_t clock;
  timespec time{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return {};
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::seconds(time.tv_sec) +
                                                               std::chrono::nanoseconds(time.tv_nsec));
}

}  // namespace rnicsim::sim
