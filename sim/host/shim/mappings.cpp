// SPDX-License-Identifier: Apache-2.0
// Pinned pages that the program unmaps stay the device's until the last pin is gone, as on Linux: they are first moved
// to an address of their own. Memory that the C library unmaps by itself, as free() does, is not moved: the device then
// finds nothing there.
#include "sim/host/shim/mappings.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>

#include "sim/host/kernel/processes/huge_pages.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

namespace rnicsim::clock {
namespace {

using abi::SetAside;

constexpr std::uintptr_t kPage = 4096;
constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, Linux 5.14
constexpr int kDropLocked = 24;    // MADV_DONTNEED_LOCKED, Linux 5.18
constexpr int kDontUnmap = 4;      // MREMAP_DONTUNMAP, Linux 5.7

std::uintptr_t page_of(std::uintptr_t address) { return address / kPage * kPage; }
std::uintptr_t pages_end(std::uintptr_t address) { return (address + kPage - 1) / kPage * kPage; }
std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// All pages that were ever pinned are in this range. Most programs unmap nothing there, and need no call.
std::atomic<std::uintptr_t> lowest_pinned{UINTPTR_MAX};
std::atomic<std::uintptr_t> pinned_end{0};

bool may_be_pinned(const void* address, std::size_t bytes) {
  const auto begin = number(address);
  return begin < pinned_end.load(std::memory_order_relaxed) &&
         pages_end(begin + bytes) > lowest_pinned.load(std::memory_order_relaxed);
}

abi::ThreadSlot* slot_for_calls() { return simulated() ? simulated_slot() : own_slot(); }

void* real_mremap(const void* from, std::size_t old_bytes, std::size_t bytes, int flags, const void* to) {
  return reinterpret_cast<void*>(checked_call(SYS_mremap, from, old_bytes, bytes, flags, to));
}

// A range may have several mappings, and an older kernel moves only one at a time: halves the range until that
// succeeds.
void move_pages(std::uintptr_t from, std::size_t bytes, std::uintptr_t to, int flags) {
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  const int how = MREMAP_MAYMOVE | MREMAP_FIXED | flags;
  if (real_mremap(at(from), bytes, bytes, how, at(to)) != MAP_FAILED || bytes <= kPage) return;
  const auto half = page_of(bytes / 2 + kPage - 1);
  move_pages(from, half, to, flags);
  move_pages(from + half, bytes - half, to + half, flags);
}

// Call before the program takes the pages away in the way `how`. True: some were pinned, and are moved.
bool set_aside(const void* address, std::size_t bytes, SetAside how) {
  if (!may_be_pinned(address, how == SetAside::detached ? SIZE_MAX / 2 : bytes)) return false;
  abi::ThreadSlot* slot = slot_for_calls();
  if (slot == nullptr) return false;
  const int saved = errno;
  bool any = false;
  for (; call(*slot, abi::Call::set_aside, {number(address), pages_end(bytes), std::uint64_t(how)}) == 0; any = true)
    move_pages(slot->value, slot->argument[1], slot->argument[2], how == SetAside::dropped ? kDontUnmap : 0);
  errno = saved;
  return any;
}

bool is_aligned(const void* address) { return number(address) % kPage == 0; }

}  // namespace

// Populates for reading, because pages that were never written then take no memory of the machine.
bool populate(const void* address, std::size_t bytes) {
  const auto begin = page_of(number(address));
  const auto end = pages_end(number(address) + bytes);
  if (end <= begin) return true;
  const int saved = errno;
  const bool lost = checked_call(SYS_madvise, begin, end - begin, kPopulateRead) != 0 && errno == EFAULT;
  errno = saved;
  return !lost;
}

void note_pinned(const void* address, std::size_t bytes) {
  const auto extend = [](std::atomic<std::uintptr_t>& edge, std::uintptr_t to, auto better) {
    auto now = edge.load();
    while (better(to, now) && !edge.compare_exchange_weak(now, to)) {}
  };
  extend(lowest_pinned, page_of(number(address)), std::less<>());
  extend(pinned_end, pages_end(number(address) + bytes), std::greater<>());
}

bool may_be_pinned(std::uint64_t address) {
  const bool ring = address >= abi::kMemoryAddress && address - abi::kMemoryAddress < abi::kMemoryBytes;
  return ring || (address >= lowest_pinned.load() && address < pinned_end.load());
}

void unmap_aside(std::uint64_t address, std::size_t bytes) { checked_call(SYS_munmap, address, bytes); }

int unmap_pages(void* address, std::size_t bytes) {
  if (is_aligned(address)) set_aside(address, bytes, abi::SetAside::unmapped);
  return int(checked_call(SYS_munmap, address, bytes));
}

void* map_pages(void* address, std::size_t bytes, int protection, int flags, int fd, long offset) {
  const bool replaces = (flags & MAP_FIXED) != 0 && (flags & MAP_FIXED_NOREPLACE) != MAP_FIXED_NOREPLACE;
  if (replaces && is_aligned(address)) set_aside(address, bytes, abi::SetAside::unmapped);
  if (wants_huge_pages(flags)) return map_huge_pages(address, bytes, protection, flags);
  return reinterpret_cast<void*>(checked_call(SYS_mmap, address, bytes, protection, flags, fd, offset));
}

void* remap_pages(void* address, std::size_t old_bytes, std::size_t bytes, int flags, void* wanted) {
  const auto old = pages_end(old_bytes);
  const auto kept = std::min(old, pages_end(bytes));
  const bool pinned = is_aligned(address) && old_bytes != 0 && may_be_pinned(address, old);
  if ((flags & MREMAP_FIXED) != 0) set_aside(wanted, bytes, abi::SetAside::unmapped);
  if (pinned && kept < old) set_aside(static_cast<std::byte*>(address) + kept, old - kept, abi::SetAside::unmapped);
  if (pinned) set_aside(address, old, abi::SetAside::moved);
  abi::ThreadSlot* slot = pinned ? slot_for_calls() : nullptr;
  if (slot != nullptr) sync(*slot);  // nothing happens between the move and the call that reports it
  void* moved = real_mremap(address, old_bytes, bytes, flags, wanted);
  if (slot != nullptr && moved != MAP_FAILED && moved != address)
    call(*slot, abi::Call::pages_moved, {number(address), kept, number(moved)});
  return moved;
}

int advise_pages(void* address, std::size_t bytes, int advice) {
  // Pinned pages are not freed, and this library does not know which pages those are.
  if (advice == MADV_FREE && may_be_pinned(address, bytes)) return 0;
  if ((advice == MADV_DONTNEED || advice == kDropLocked) && is_aligned(address))
    set_aside(address, bytes, abi::SetAside::dropped);
  return int(checked_call(SYS_madvise, address, bytes, advice));
}

int detach_segment(const void* address) {
  // shmdt() works although the first pages of the segment were moved. It fails if all pages were moved.
  const bool any = set_aside(address, 0, abi::SetAside::detached);
  const int saved = errno;
  if (checked_call(SYS_shmdt, address) == 0) return 0;
  if (any) errno = saved;
  return any ? 0 : -1;
}

}  // namespace rnicsim::clock

using namespace rnicsim::clock;

RNICSIM_EXPORT int munmap(void* address, size_t bytes) noexcept { return unmap_pages(address, bytes); }

RNICSIM_EXPORT void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  return map_pages(address, bytes, protection, flags, fd, offset);
}
RNICSIM_EXPORT void* mmap64(void* address, size_t bytes, int protection, int flags, int fd, off64_t offset) noexcept {
  return map_pages(address, bytes, protection, flags, fd, offset);
}

// Pinned pages that move stay the device's, at their new address.
RNICSIM_EXPORT void* mremap(void* address, size_t old_bytes, size_t bytes, int flags, ...) noexcept {
  va_list list;
  va_start(list, flags);
  void* wanted = (flags & MREMAP_FIXED) != 0 ? va_arg(list, void*) : nullptr;
  va_end(list);
  return remap_pages(address, old_bytes, bytes, flags, wanted);
}

RNICSIM_EXPORT int madvise(void* address, size_t bytes, int advice) noexcept {
  return advise_pages(address, bytes, advice);
}

RNICSIM_EXPORT int shmdt(const void* address) noexcept { return detach_segment(address); }
