// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/processes/affinity.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "sim/host/kernel/processes/threads.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/perhaps_null.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(sched_setaffinity);
RNICSIM_NEXT(sched_getaffinity);
RNICSIM_NEXT(pthread_setaffinity_np);
RNICSIM_NEXT(pthread_getaffinity_np);

namespace rnicsim::clock {
namespace {

int affinity_call(abi::ThreadSlot& slot, std::uint64_t number, bool sets) {
  charge(slot, abi::CpuCost::system_call);
  return call(slot, abi::Call::affinity, {number, sets ? 1u : 0u});
}

// Size of the mask in bytes, up to the last word with a processor of the host.
std::size_t known_bytes() {
  const auto& bits = session()->header().processors.bits;
  std::size_t words = std::size(bits);
  while (words > 1 && bits[words - 1] == 0) --words;
  return words * sizeof bits[0];
}

// Linux's rules: whole words, with room for all of the host's processors.
int get_as_bytes(abi::ThreadSlot& slot, std::uint64_t number, size_t size, void* bytes) {
  if (size < known_bytes() || size % sizeof(unsigned long) != 0) return EINVAL;
  if (bytes == nullptr) return EFAULT;
  abi::ProcessorSet set;
  const int error = get_affinity(slot, number, set);
  if (error != 0) return error;
  memcpy(bytes, &set, std::min(size, known_bytes()));
  return 0;
}
// As get_as_bytes; clears the bytes of `size` for which the host has no processors.
int get_whole_set(abi::ThreadSlot& slot, std::uint64_t number, size_t size, void* bytes) {
  if (bytes != nullptr) memset(bytes, 0, size);
  return get_as_bytes(slot, number, size, bytes);
}
// LLVM's OpenMP runtime passes a null set to find out whether affinity can be set: EFAULT says that it can.
int set_as_bytes(abi::ThreadSlot& slot, std::uint64_t number, size_t size, const void* bytes) {
  if (bytes == nullptr) return EFAULT;
  abi::ProcessorSet set;
  memcpy(&set, bytes, std::min(size, sizeof set));
  return set_affinity(slot, number, set);
}

int failed(int error) {
  errno = error;
  return -1;
}

}  // namespace

int get_affinity(abi::ThreadSlot& slot, std::uint64_t number, abi::ProcessorSet& set) {
  const int error = affinity_call(slot, number, false);
  if (error == 0) memcpy(&set, slot.output, sizeof set);
  return error;
}

int set_affinity(abi::ThreadSlot& slot, std::uint64_t number, const abi::ProcessorSet& set) {
  memcpy(slot.input, &set, sizeof set);
  slot.input_bytes = sizeof set;
  return affinity_call(slot, number, true);
}

long get_affinity_call(abi::ThreadSlot& slot, long number, size_t size, void* bytes) {
  const int error = get_as_bytes(slot, std::uint64_t(number), size, bytes);
  return error != 0 ? failed(error) : long(std::min(size, known_bytes()));
}

// By default the C library allows eight arenas for each processor and asks the real kernel for the number of
// processors, which may change between two runs and within one.
void fix_malloc_arenas() {
  if (::getenv("MALLOC_ARENA_MAX") != nullptr || ::getenv("GLIBC_TUNABLES") != nullptr) return;
  int processors = 0;
  for (const std::uint64_t bits : session()->header().processors.bits) processors += std::popcount(bits);
  ::mallopt(M_ARENA_MAX, 8 * processors);
}

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int sched_setaffinity(pid_t id, size_t size, const cpu_set_t* set) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_sched_setaffinity(id, size, set);
  const int error = set_as_bytes(*slot, std::uint64_t(id), size, set);
  return error != 0 ? failed(error) : 0;
}
RNICSIM_EXPORT int sched_getaffinity(pid_t id, size_t size, cpu_set_t* set) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_sched_getaffinity(id, size, set);
  const long bytes = get_affinity_call(*slot, id, size, set);
  if (bytes < 0) return -1;
  memset(reinterpret_cast<char*>(set) + bytes, 0, size - size_t(bytes));
  return 0;
}

RNICSIM_EXPORT int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t* set) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  const abi::ThreadSlot* of = slot_of(thread);
  if (slot == nullptr || of == nullptr) return next_pthread_setaffinity_np(thread, size, set);
  return set_as_bytes(*slot, of->virtual_tid, size, perhaps_null(set));
}
RNICSIM_EXPORT int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t* set) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  const abi::ThreadSlot* of = slot_of(thread);
  if (slot == nullptr || of == nullptr) return next_pthread_getaffinity_np(thread, size, set);
  return get_whole_set(*slot, of->virtual_tid, size, perhaps_null(set));
}
