// SPDX-License-Identifier: Apache-2.0
// System V shared memory. Numbers and keys are the simulated host's, because those of the real kernel differ in each
// run. Files of the host, which its processes share, hold the real number of each segment.

#include "sim/host/kernel/ipc/shared_segments.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>

#include "sim/host/kernel/processes/huge_pages.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(shmget);
RNICSIM_NEXT(shmctl);

namespace rnicsim::clock {
namespace {

constexpr char kFolder[] = "/dev/shm/.sysv";  // one of the host's own folders

int fail(int error) {
  errno = error;
  return -1;
}

struct Path {
  Path(const char* kind, long number) { snprintf(text, sizeof text, "%s/%s%ld", kFolder, kind, number); }
  char text[64];
};

// The number in a file; nullopt: no such file.
std::optional<int> read_number(const Path& path) {
  const int fd = ::open(path.text, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  char digits[16] = {};
  const ssize_t got = ::pread(fd, digits, sizeof digits - 1, 0);
  ::close(fd);
  return got > 0 ? std::optional(::atoi(digits)) : std::nullopt;
}
bool write_number(const Path& path, int number) {
  const int fd = ::open(path.text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  char digits[16];
  const int length = snprintf(digits, sizeof digits, "%d", number);
  const bool written = ::pwrite(fd, digits, std::size_t(length), 0) == length;
  ::close(fd);
  return written;
}

std::optional<int> real_segment(int number) { return read_number({"", number}); }

// A segment in huge pages takes pages of the simulated host, not of the machine.
int new_real_segment(size_t bytes, int flags) {
  if ((flags & SHM_HUGETLB) == 0) return next_shmget(IPC_PRIVATE, bytes, flags & ~IPC_EXCL);
  constexpr int kSize = 0x3f << 26;  // SHM_HUGE_MASK: there are only pages of 2 MiB
  const size_t whole = segment_bytes_in_huge_pages(bytes);
  if (whole == 0) return fail(bytes == 0 ? EINVAL : ENOMEM);
  if ((flags & kSize) != 0 && (flags & kSize) != 21 << 26) return fail(ENOMEM);
  const int real = next_shmget(IPC_PRIVATE, whole, flags & ~(IPC_EXCL | SHM_HUGETLB | kSize));
  if (real >= 0) note_huge_segment(real);
  return real;
}

// The calling thread has the turn, so that no other thread counts meanwhile.
int new_segment(key_t key, size_t bytes, int flags) {
  const int real = new_real_segment(bytes, flags);
  if (real < 0) return real;
  const int kept = errno;
  if (::mkdir(kFolder, 0700) != 0 && errno == EEXIST) errno = kept;
  const Path last{"last", 0};
  const int number = read_number(last).value_or(-1) + 1;
  const bool huge = (flags & SHM_HUGETLB) != 0;
  const bool noted = write_number(last, number) && write_number({"", number}, real) &&
                     (!huge || write_number({"huge", number}, real)) &&
                     (key == IPC_PRIVATE || write_number({"key", key}, number));
  if (noted) return number;
  next_shmctl(real, IPC_RMID, nullptr);
  return fail(ENOSPC);
}

// Number and size of the segment with this key. A segment that is to be removed has no key.
struct Keyed {
  int number;
  size_t bytes;
};
std::optional<Keyed> keyed_segment(key_t key) {
  const auto number = key != IPC_PRIVATE ? read_number({"key", key}) : std::nullopt;
  const auto real = number ? real_segment(*number) : std::nullopt;
  shmid_ds segment;
  if (!real || next_shmctl(*real, IPC_STAT, &segment) != 0 || (segment.shm_perm.mode & SHM_DEST) != 0)
    return std::nullopt;
  return Keyed{*number, segment.shm_segsz};
}

// As Linux does, attaches at the beginning of a huge page.
void* attach_huge_segment(int real, int flags) {
  shmid_ds segment{};
  void* const failed = reinterpret_cast<void*>(-1);
  if (next_shmctl(real, IPC_STAT, &segment) != 0) return failed;
  void* place = place_for_huge_pages(segment.shm_segsz);
  if (place == nullptr) return failed;
  const long attached = checked_call(SYS_shmat, real, place, flags | SHM_REMAP);
  if (attached == -1) {
    const int error = errno;
    checked_call(SYS_munmap, place, segment.shm_segsz);
    fail(error);
  }
  return reinterpret_cast<void*>(attached);
}

}  // namespace

void* attach_segment(int number, const void* address, int flags) {
  const auto real = simulated_slot() != nullptr ? real_segment(number) : std::optional(number);
  const auto words = reinterpret_cast<std::uintptr_t>(address);
  if (real && address == nullptr && read_number({"huge", number}) == real) return attach_huge_segment(*real, flags);
  if (real) return reinterpret_cast<void*>(checked_call(SYS_shmat, *real, words, flags));
  errno = EINVAL;
  return reinterpret_cast<void*>(-1);
}

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int shmget(key_t key, size_t bytes, int flags) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_shmget(key, bytes, flags);
  charge(*slot, abi::CpuCost::system_call);
  sync(*slot);
  const auto found = keyed_segment(key);
  if (!found) return key == IPC_PRIVATE || (flags & IPC_CREAT) != 0 ? new_segment(key, bytes, flags) : fail(ENOENT);
  if ((flags & IPC_CREAT) != 0 && (flags & IPC_EXCL) != 0) return fail(EEXIST);
  return found->bytes < bytes ? fail(EINVAL) : found->number;
}

RNICSIM_EXPORT void* shmat(int number, const void* address, int flags) noexcept {
  return attach_segment(number, address, flags);
}

RNICSIM_EXPORT int shmctl(int number, int operation, shmid_ds* segment) noexcept {
  const bool is_of_one = operation == IPC_STAT || operation == IPC_SET || operation == IPC_RMID ||
                         operation == SHM_LOCK || operation == SHM_UNLOCK;
  if (simulated_slot() == nullptr || !is_of_one) return next_shmctl(number, operation, segment);
  const auto real = real_segment(number);
  if (!real) return fail(EINVAL);
  const int result = next_shmctl(*real, operation, segment);
  if (result != 0) return result;
  if (operation == IPC_STAT) {  // times and processes would be the machine's
    segment->shm_cpid = segment->shm_lpid = 0;
    segment->shm_atime = segment->shm_dtime = segment->shm_ctime = 0;
  }
  return result;
}
