// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/processes/clones.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "sim/host/shim/next.h"
#include "sim/host/shim/noted_calls.h"
#include "sim/host/shim/session.h"

RNICSIM_NEXT(clone);

namespace rnicsim::clock {
namespace {

// Addresses at which the child's number is stored.
struct Numbers {
  pid_t* of_child;  // in the parent's memory, by CLONE_PARENT_SETTID
  pid_t* of_own;    // in the child's memory, by CLONE_CHILD_SETTID
};

bool is_fork(long flags) {
  // CLONE_PARENT_SETTID and CLONE_CHILD_SETTID only store a number. CLONE_CHILD_CLEARTID clears one at the child's end,
  // in memory that no other process has.
  const long shared = flags & ~long(CSIGNAL | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID);
  return (flags & CSIGNAL) == SIGCHLD && (shared == 0 || shared == CLONE_VFORK || shared == (CLONE_VM | CLONE_VFORK));
}

pid_t fork_as_told(long flags, const Numbers& numbers) {
  const pid_t child = ::fork();
  if (child > 0 && (flags & CLONE_PARENT_SETTID) != 0) *numbers.of_child = child;
  if (child == 0 && (flags & CLONE_CHILD_SETTID) != 0) *numbers.of_own = ::gettid();
  return child;
}

// Calls the child's function on the stack that clone() was given.
[[noreturn]] void run_on(void* stack, int (*function)(void*), void* argument) {
  const std::uintptr_t top = reinterpret_cast<std::uintptr_t>(stack) & ~std::uintptr_t{15};
  void (*const leave)(int) = ::_exit;
  asm volatile(
      "mov %0, %%rsp\n"
      "xor %%ebp, %%ebp\n"
      "call *%1\n"
      "mov %%eax, %%edi\n"
      "call *%2\n"
      "ud2"
      :
      : "S"(top), "a"(function), "b"(leave), "D"(argument)
      : "memory");
  __builtin_unreachable();
}

}  // namespace

long refuse_clone(long number) {
  note_real_call(number);
  errno = ENOSYS;
  return -1;
}

// A child with another stack is refused: it would return from here on a stack without a return address.
long clone_call(const Words& words) {
  if (!is_fork(words[0]) || words[1] != 0) return refuse_clone(SYS_clone);
  return fork_as_told(words[0], {reinterpret_cast<pid_t*>(words[2]), reinterpret_cast<pid_t*>(words[3])});
}

}  // namespace rnicsim::clock

using namespace rnicsim::clock;

RNICSIM_EXPORT int clone(int (*function)(void*), void* stack, int flags, void* argument, ...) noexcept {
  va_list list;
  va_start(list, argument);
  auto* const of_child = va_arg(list, pid_t*);
  void* const thread_area = va_arg(list, void*);
  auto* const of_own = va_arg(list, pid_t*);
  va_end(list);
  if (session() == nullptr) return next_clone(function, stack, flags, argument, of_child, thread_area, of_own);
  if (function == nullptr || stack == nullptr) {
    errno = EINVAL;
    return -1;
  }
  if (!is_fork(flags)) return int(refuse_clone(SYS_clone));
  const pid_t child = fork_as_told(flags, {of_child, of_own});
  if (child == 0) run_on(stack, function, argument);
  return child;
}
RNICSIM_EXPORT int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...) noexcept
    __attribute__((alias("clone")));
