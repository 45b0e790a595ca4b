#include "sim/attached/native_thread.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>

namespace rnicsim::sim {
namespace {

// "state parent ...", of "pid (name) state parent ...": the name may hold anything, its parenthesis is the last.
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

// A thread that lost its processor just before it would have slept, in a wait4() that need not wait, say, has the state
// of a sleeper and runs.
bool NativeThread::sleeps() const {
  return behind_name(read("stat")).starts_with('S') && !read("syscall").starts_with("running");
}

bool NativeThread::is_stopped() const { return behind_name(read("stat")).starts_with('T'); }

std::string NativeThread::system_call() const {
  const std::string line = read("syscall");
  return "system call " + line.substr(0, line.find(' '));
}

bool NativeThread::has_signal(const char* set, int signal) const {
  const std::string label = fmt::format("{}:", set);
  std::ifstream in(fmt::format("/proc/{}/task/{}/status", process_, thread_));
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(label)) return (std::stoull(line.substr(label.size()), nullptr, 16) >> (signal - 1) & 1) != 0;
  return false;
}
bool NativeThread::catches(int signal) const { return has_signal("SigCgt", signal); }
bool NativeThread::awaits(int signal) const { return has_signal("SigPnd", signal); }

void NativeThread::send(int signal) const { ::tgkill(process_, thread_, signal); }

pid_t parent_of(pid_t process) {
  std::ifstream in(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(in, line);
  const std::string fields = behind_name(line);
  return fields.size() < 3 ? 0 : pid_t(std::strtol(fields.c_str() + 2, nullptr, 10));
}

}  // namespace rnicsim::sim
