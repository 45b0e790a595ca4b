// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/processes/huge_pages.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstdint>

#include "model/abi/attach.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

namespace rnicsim::clock {
namespace {

constexpr std::size_t kPage = abi::kHugePageBytes;
constexpr unsigned kSizeShift = 26, kSizeMask = 0x3f, kLogPage = 21;  // MAP_HUGE_SHIFT, MAP_HUGE_MASK; value for 2 MiB

abi::ThreadSlot* slot_for_calls() { return simulated() ? simulated_slot() : own_slot(); }

void* failed(int error) {
  errno = error;
  return MAP_FAILED;
}

bool is_of_our_size(int flags) {
  const unsigned log = unsigned(flags) >> kSizeShift & kSizeMask;
  return log == 0 || log == kLogPage;
}

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
bool is_aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % kPage == 0; }

}  // namespace

HugePageCounts huge_pages() {
  abi::ThreadSlot* slot = slot_for_calls();
  if (slot == nullptr) return {};
  const int saved = errno;
  HugePageCounts counts;
  if (call_without_signals(*slot, abi::Call::huge_pages, {0, 0}) == 0) counts = {slot->value, slot->argument[1]};
  raise_signals(*slot);
  errno = saved;
  return counts;
}

bool wants_huge_pages(int flags) {
  return (flags & MAP_HUGETLB) != 0 && (flags & MAP_ANONYMOUS) != 0 && slot_for_calls() != nullptr;
}

void* place_for_huge_pages(std::size_t bytes) {
  const std::size_t reserved = bytes + kPage;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const long begin = checked_call(SYS_mmap, nullptr, reserved, PROT_NONE, kFlags, -1, 0);
  if (begin == -1) return nullptr;
  const auto first = std::uintptr_t(begin);
  const std::uintptr_t place = whole_pages(first);
  if (place != first) checked_call(SYS_munmap, first, place - first);
  checked_call(SYS_munmap, place + bytes, first + reserved - place - bytes);
  return reinterpret_cast<void*>(place);
}

void* map_huge_pages(void* address, std::size_t bytes, int protection, int flags) {
  const bool fixed = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
  if (bytes == 0 || (fixed && !is_aligned(address))) return failed(EINVAL);
  const std::size_t whole = whole_pages(bytes);
  if (!is_of_our_size(flags) || whole < bytes || whole / kPage > huge_pages().free) return failed(ENOMEM);
  const long file = checked_call(SYS_memfd_create, abi::kHugePagesName, MFD_CLOEXEC);
  if (file == -1) return failed(ENOMEM);
  void* place = fixed ? address : place_for_huge_pages(whole);
  const int kept = flags & (MAP_SHARED | MAP_PRIVATE | MAP_LOCKED | MAP_POPULATE | MAP_NORESERVE);
  const int how = kept | (fixed ? flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) : MAP_FIXED);
  long mapped = -1;
  if (place != nullptr && checked_call(SYS_ftruncate, file, whole) == 0)
    mapped = checked_call(SYS_mmap, place, whole, protection, how, file, 0);
  const int error = errno;
  checked_call(SYS_close, file);
  if (mapped != -1) return reinterpret_cast<void*>(mapped);
  if (!fixed && place != nullptr) checked_call(SYS_munmap, place, whole);
  return failed(error == EEXIST ? EEXIST : ENOMEM);
}

std::size_t segment_bytes_in_huge_pages(std::size_t bytes) {
  const std::size_t whole = whole_pages(bytes);
  return whole / kPage > huge_pages().free ? 0 : whole;
}

void note_huge_segment(int real_number) {
  if (abi::ThreadSlot* slot = slot_for_calls()) call(*slot, abi::Call::huge_pages, {1, std::uint64_t(real_number)});
}

}  // namespace rnicsim::clock
