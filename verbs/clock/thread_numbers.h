// Numbers of threads and processes as a simulated program knows them, and the real kernel's.
#pragma once

#include <errno.h>
#include <sys/types.h>

#include <optional>

namespace rnicsim::clock {

// A thread of this process. Signal handlers may ask, too.
std::optional<pid_t> real_tid_of(pid_t virtual_tid);

// A thread of this process, or a process of this host. 0 and what is below are the kernel's own: the caller, and none.
std::optional<pid_t> real_id_of(pid_t virtual_id);

// `call` gets the real number; -1 and ESRCH: there is nobody.
template <class Call>
auto with_real_id(pid_t id, Call call) {
  const auto real = real_id_of(id);
  if (real) return call(*real);
  errno = ESRCH;
  return decltype(call(id))(-1);
}

}  // namespace rnicsim::clock
