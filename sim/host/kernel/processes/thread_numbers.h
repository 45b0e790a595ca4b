// SPDX-License-Identifier: Apache-2.0
// Translates numbers of threads and processes that a simulated program knows into the real kernel's.
#pragma once

#include <errno.h>
#include <sys/types.h>

#include <optional>

namespace rnicsim::clock {

// A thread of this process; nullopt: none. Signal handlers may call this.
std::optional<pid_t> real_tid_of(pid_t virtual_tid);

// A thread of this process, or a process of this host; nullopt: none. 0 (the caller) and negative numbers stay.
std::optional<pid_t> real_id_of(pid_t virtual_id);

// Passes the real number to `call`; -1 with ESRCH: no such thread or process.
template <class Call>
auto with_real_id(pid_t id, Call call) {
  const auto real = real_id_of(id);
  if (real) return call(*real);
  errno = ESRCH;
  return decltype(call(id))(-1);
}

}  // namespace rnicsim::clock
