// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/signal_stack.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"

RNICSIM_NEXT(sigaltstack);

namespace rnicsim::clock {
namespace {

constexpr std::size_t kGuardBytes = 4096;
constexpr std::size_t kStackBytes = 256 * 1024;
// Room for a handler of the program and one of this library above it.
constexpr std::size_t kAmpleBytes = 64 * 1024;
constexpr std::size_t kLeastBytes = 2048;   // MINSIGSTKSZ of the kernel
constexpr int kAutoDisarm = int(1u << 31);  // SS_AUTODISARM of <linux/signal.h>

struct Stacks {
  std::byte* ours = nullptr;  // with its guard page
  stack_t program{nullptr, SS_DISABLE, 0};
};
thread_local Stacks stacks;

void install(const stack_t& stack) { checked_call(SYS_sigaltstack, &stack, nullptr); }
stack_t our_stack() { return {stacks.ours + kGuardBytes, 0, kStackBytes}; }

std::uintptr_t here() { return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)); }

bool has(const void* base, std::size_t bytes, std::uintptr_t address) {
  return address - reinterpret_cast<std::uintptr_t>(base) < bytes;
}

// The kernel's answer if the program's stack were installed. While this library's stack is installed in its place, a
// thread that runs there counts as running on the program's.
int flags_of_program(std::uintptr_t stands) {
  const stack_t& program = stacks.program;
  if ((program.ss_flags & SS_DISABLE) != 0) return SS_DISABLE;
  const bool runs = has(program.ss_sp, program.ss_size, stands) || has(stacks.ours + kGuardBytes, kStackBytes, stands);
  return program.ss_flags | (runs ? SS_ONSTACK : 0);
}

int refusal(const stack_t& wanted, std::uintptr_t stands) {
  if ((flags_of_program(stands) & SS_ONSTACK) != 0) return EPERM;
  const int mode = wanted.ss_flags & ~kAutoDisarm;
  if (mode != 0 && mode != SS_ONSTACK && mode != SS_DISABLE) return EINVAL;
  return mode != SS_DISABLE && wanted.ss_size < kLeastBytes ? ENOMEM : 0;
}

}  // namespace

void take_signal_stack() {
  if (stacks.ours != nullptr) return;  // a forked child has its parent's
  void* memory = ::mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  ::mprotect(memory, kGuardBytes, PROT_NONE);
  stacks.ours = static_cast<std::byte*>(memory);
  install(our_stack());
}

void release_signal_stack() {
  if (stacks.ours == nullptr || has(stacks.ours, kGuardBytes + kStackBytes, here())) return;
  install({nullptr, SS_DISABLE, 0});
  ::munmap(stacks.ours, kGuardBytes + kStackBytes);
  stacks = {};
}

bool shares_stack_with(std::uintptr_t stands) {
  const auto shares = [&](const void* base, std::size_t bytes) { return has(base, bytes, stands); };
  if (has(stacks.ours + kGuardBytes, kStackBytes, here())) return shares(stacks.ours + kGuardBytes, kStackBytes);
  const stack_t& program = stacks.program;
  if (has(program.ss_sp, program.ss_size, here())) return shares(program.ss_sp, program.ss_size);
  return true;
}

std::optional<stack_t> set_signal_stack(const stack_t* wanted, stack_t* old, std::uintptr_t stands) {
  stack_t before{stacks.program.ss_sp, flags_of_program(stands), stacks.program.ss_size};
  // A handler that asks for the stack on which it runs (Go's does) gets the real one.
  if ((before.ss_flags & SS_ONSTACK) != 0 && has(stacks.ours + kGuardBytes, kStackBytes, stands)) {
    before.ss_sp = stacks.ours + kGuardBytes;
    before.ss_size = kStackBytes;
  }
  std::optional<stack_t> used = our_stack();
  if (wanted != nullptr) {
    if (const int error = refusal(*wanted, stands); error != 0) {
      errno = error;
      return std::nullopt;
    }
    const bool enabled = (wanted->ss_flags & SS_DISABLE) == 0;
    stacks.program = enabled ? stack_t{wanted->ss_sp, wanted->ss_flags & kAutoDisarm, wanted->ss_size}
                             : stack_t{nullptr, SS_DISABLE, 0};
    if (enabled && wanted->ss_size >= kAmpleBytes) used = stacks.program;
  }
  if (old != nullptr) *old = before;
  return used;
}

}  // namespace rnicsim::clock

using namespace rnicsim::clock;

RNICSIM_EXPORT int sigaltstack(const stack_t* wanted, stack_t* old) noexcept {
  if (stacks.ours == nullptr) return next_sigaltstack(wanted, old);
  const auto used = set_signal_stack(wanted, old, here());
  if (used && wanted != nullptr) install(*used);
  return used ? 0 : -1;
}
