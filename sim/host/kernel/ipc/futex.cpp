// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/ipc/futex.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "sim/host/shim/next.h"
#include "sim/host/shim/noted_calls.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/time/timeline.h"
#include "sim/host/time/turn.h"

namespace rnicsim::clock {
namespace {

int fail(int error) {
  errno = error;
  return -1;
}

// True: the word is in memory that is mapped as shared, so that another process may wait for it or wake it. Each call
// reads the table of mappings; futex() does not ask for words that the program declares private.
bool is_shared(const void* word) {
  const int fd = int(raw_call(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC));
  if (fd < 0) return false;
  const auto wanted = reinterpret_cast<std::uintptr_t>(word);
  char text[4096];
  std::size_t held = 0;
  bool shared = false;
  for (long got; (got = raw_call(SYS_read, fd, text + held, sizeof text - 1 - held)) > 0;) {
    held += std::size_t(got);
    text[held] = 0;
    char* line = text;
    for (char* end; (end = strchr(line, '\n')) != nullptr; line = end + 1) {
      unsigned long first = 0, last = 0;
      char rights[5] = {};
      if (::sscanf(line, "%lx-%lx %4s", &first, &last, rights) == 3 && wanted >= first && wanted < last)
        shared = rights[3] == 's';
    }
    held -= std::size_t(line - text);
    // A line longer than the buffer is dropped: its mapping counts as not shared.
    if (held == sizeof text - 1) held = 0;
    memmove(text, line, held);
  }
  raw_call(SYS_close, fd);
  return shared;
}

long in_real_kernel(const FutexCall& call) {
  note_real_call(SYS_futex);
  return checked_call(SYS_futex, call.word, call.operation, call.value, call.timeout, call.second_word,
                      call.third_value);
}

long wait(abi::ThreadSlot& slot, const FutexCall& call, std::uint64_t deadline) {
  charge(slot, abi::CpuCost::system_call);
  sync(slot);  // the word is read when the world has reached this time
  if (*static_cast<volatile std::uint32_t*>(call.word) != call.value) return fail(EAGAIN);
  if (deadline != abi::kForever && deadline <= slot.now) return fail(ETIMEDOUT);
  return wait_on(slot, call.word, deadline, call.sharing) == ETIMEDOUT ? fail(ETIMEDOUT) : 0;
}

// The timeout of FUTEX_WAIT is a duration, that of the others a point in time.
std::uint64_t deadline_of(const abi::ThreadSlot& slot, const FutexCall& call, bool relative) {
  if (call.timeout == nullptr) return abi::kForever;
  if (relative) return after(slot.now, picoseconds(*call.timeout));
  const bool wall = (call.operation & FUTEX_CLOCK_REALTIME) != 0;
  return moment(wall ? CLOCK_REALTIME : CLOCK_MONOTONIC, *call.timeout);
}

bool holds(std::uint32_t comparison, std::uint32_t old, std::int32_t with) {
  const auto value = std::int32_t(old);
  switch (comparison) {
    case FUTEX_OP_CMP_EQ: return value == with;
    case FUTEX_OP_CMP_NE: return value != with;
    case FUTEX_OP_CMP_LT: return value < with;
    case FUTEX_OP_CMP_LE: return value <= with;
    case FUTEX_OP_CMP_GT: return value > with;
    default: return value >= with;
  }
}

std::int32_t sign_extended(std::uint32_t twelve_bits) { return std::int32_t(twelve_bits << 20) >> 20; }

// FUTEX_WAKE_OP: changes the second word, wakes waiters at the first word, and wakes waiters at the second word if its
// old value satisfies a comparison.
long wake_two(abi::ThreadSlot& slot, const FutexCall& call) {
  const std::uint32_t code = call.third_value;
  std::int32_t operand = sign_extended(code >> 12 & 0xfff);
  if ((code >> 28 & FUTEX_OP_OPARG_SHIFT) != 0) operand = std::int32_t(1u << (operand & 31));
  const std::uint32_t old = *call.second_word;
  switch (code >> 28 & 7) {
    case FUTEX_OP_SET: *call.second_word = std::uint32_t(operand); break;
    case FUTEX_OP_ADD: *call.second_word = old + std::uint32_t(operand); break;
    case FUTEX_OP_OR: *call.second_word = old | std::uint32_t(operand); break;
    case FUTEX_OP_ANDN: *call.second_word = old & ~std::uint32_t(operand); break;
    case FUTEX_OP_XOR: *call.second_word = old ^ std::uint32_t(operand); break;
    default: return fail(ENOSYS);
  }
  auto woken = long(wake(slot, call.word, call.value, call.sharing));
  const auto most_at_second = std::uint64_t(reinterpret_cast<std::uintptr_t>(call.timeout));
  if (holds(code >> 24 & 0xf, old, sign_extended(code & 0xfff)))
    woken += long(wake(slot, call.second_word, most_at_second, call.sharing));
  return woken;
}

}  // namespace

long futex(abi::ThreadSlot& slot, FutexCall call) {
  const int operation = call.operation & FUTEX_CMD_MASK;
  const bool may_be_shared = (call.operation & FUTEX_PRIVATE_FLAG) == 0;
  if (reinterpret_cast<std::uintptr_t>(call.word) % sizeof(std::uint32_t) != 0) return fail(EINVAL);
  if (call.word == nullptr) return fail(EFAULT);
  call.sharing = sharing_of(may_be_shared && is_shared(call.word));
  // Waking too many threads is allowed, because they check the word again. So bit masks and requeueing wake all
  // waiters.
  const bool masked = call.third_value != FUTEX_BITSET_MATCH_ANY;
  switch (operation) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET: return wait(slot, call, deadline_of(slot, call, operation == FUTEX_WAIT));
    case FUTEX_WAKE: return long(wake(slot, call.word, call.value, call.sharing));
    case FUTEX_WAKE_BITSET: return long(wake(slot, call.word, masked ? kEveryone : call.value, call.sharing));
    case FUTEX_CMP_REQUEUE:
      if (*static_cast<volatile std::uint32_t*>(call.word) != call.third_value) return fail(EAGAIN);
      [[fallthrough]];
    case FUTEX_REQUEUE: return long(wake(slot, call.word, kEveryone, call.sharing));
    case FUTEX_WAKE_OP: return wake_two(slot, call);
    default: return in_real_kernel(call);  // operations with priority inheritance
  }
}

}  // namespace rnicsim::clock
