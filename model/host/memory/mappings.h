// SPDX-License-Identifier: Apache-2.0
// The mappings of a process's memory, from /proc/<pid>/maps, and the kernel's check whether a range may be pinned.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <vector>

namespace rnicsim::host {

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool readable = false;
  bool writable = false;
  bool shared = false;
  std::uint64_t offset = 0;  // offset in the file
  std::uint64_t device = 0;  // number of the file's device
  std::uint64_t inode = 0;   // 0: anonymous
};

// Mappings that overlap [begin, begin + bytes), by address.
std::vector<Mapping> mappings_of(pid_t pid, std::uint64_t begin, std::uint64_t bytes);

// The check of Linux before pinning. 0 or errno. EFAULT: part of the range is not mapped, not readable, or not writable
// although `writable`.
int may_be_pinned(std::span<const Mapping> mappings, std::uint64_t begin, std::uint64_t bytes, bool writable);

}  // namespace rnicsim::host
