#include "sim/attached/native_thread.h"

#include <fmt/format.h>
#include <signal.h>

#include <fstream>

namespace rnicsim::sim {

std::string NativeThread::read(const char* file) const {
  std::ifstream in(fmt::format("/proc/{}/task/{}/{}", process_, thread_, file));
  std::string line;
  std::getline(in, line);
  return line;
}

bool NativeThread::exists() const { return ::tgkill(process_, thread_, 0) == 0; }

bool NativeThread::sleeps() const {
  // pid (name) state ...: the name may hold anything, its parenthesis is the last.
  const std::string stat = read("stat");
  const auto end = stat.rfind(") ");
  return end != std::string::npos && end + 2 < stat.size() && stat[end + 2] == 'S';
}

std::string NativeThread::system_call() const {
  const std::string line = read("syscall");
  return "system call " + line.substr(0, line.find(' '));
}

bool NativeThread::catches(int signal) const {
  std::ifstream in(fmt::format("/proc/{}/task/{}/status", process_, thread_));
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("SigCgt:")) return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  return false;
}

void NativeThread::send(int signal) const { ::tgkill(process_, thread_, signal); }

}  // namespace rnicsim::sim
