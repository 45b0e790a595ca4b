// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/time/probe.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "sim/os/descriptor.h"

namespace rnicsim::sim {
namespace {

// A child process that waits until it is killed.
class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

std::string first_line(const char* path, std::string_view start = {}) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(start)) return line.substr(start.size());
  return {};
}

std::string remedy() {
  constexpr const char* kContainer =
      "in a container: docker run --security-opt seccomp=unconfined --cap-add SYS_PTRACE";
  if (std::atoi(first_line("/proc/sys/kernel/yama/ptrace_scope").c_str()) >= 2)
    return fmt::format("Yama forbids the access: sysctl kernel.yama.ptrace_scope=1; or {}", kContainer);
  const bool filtered = std::atoi(first_line("/proc/self/status", "Seccomp:").c_str()) != 0;
  return fmt::format("{}{}", filtered ? "a seccomp filter is in force; " : "", kContainer);
}

std::string refusal(const char* call, const char* purpose) {
  const int error = errno;
  if (error == ENOSYS)
    return fmt::format("{} is missing (Linux 5.3 or newer without a filter of this call is needed): {}; {}", call,
                       purpose, remedy());
  return fmt::format("{} is refused ({}): {}; {}", call, std::strerror(error), purpose, remedy());
}

}  // namespace

std::string system_problem() {
  long word = 1;  // at the same address in the child
  const Child child;
  if (child.pid() < 0) return refusal("fork", "no program can be started");
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, child.pid(), 0)));
  if (!process) return refusal("pidfd_open", "the death of a program could not be seen");
  if (::syscall(SYS_pidfd_send_signal, process.get(), 0, nullptr, 0) != 0)
    return refusal("pidfd_send_signal", "a program could not be ended");
  long seen = 0;
  const iovec local{&seen, sizeof seen};
  const iovec remote{&word, sizeof word};
  constexpr const char* kMemory = "the simulated NIC could not reach the programs' memory";
  if (::process_vm_readv(child.pid(), &local, 1, &remote, 1, 0) != ssize_t(sizeof seen))
    return refusal("process_vm_readv", kMemory);
  if (::process_vm_writev(child.pid(), &local, 1, &remote, 1, 0) != ssize_t(sizeof seen))
    return refusal("process_vm_writev", kMemory);
  // Called with no arguments: a kernel with the call returns EINVAL. ENOSYS is fine, since the C library then uses
  // clone().
  if (::syscall(SYS_clone3, nullptr, 0) < 0 && errno != EINVAL && errno != ENOSYS)
    return refusal("clone3", "programs could have no threads");
  const Descriptor memory(::memfd_create("rnicsim-probe", MFD_CLOEXEC));
  if (!memory) return refusal("memfd_create", "no memory could be shared with the programs");
  return {};
}

}  // namespace rnicsim::sim
