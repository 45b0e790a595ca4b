// What is mapped in a process's memory, by /proc/<pid>/maps, and what a kernel lets a device have of it.
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
  std::uint64_t offset = 0;  // in its file
  std::uint64_t device = 0;  // of it
  std::uint64_t inode = 0;   // 0: anonymous
};

// Those that have some of [begin, begin + bytes), in the order of their addresses.
std::vector<Mapping> mappings_of(pid_t pid, std::uint64_t begin, std::uint64_t bytes);

// As Linux pins pages: 0, or EFAULT when some of the range is not mapped, may not be read, or not be written if
// `writable`.
int may_be_pinned(std::span<const Mapping> mappings, std::uint64_t begin, std::uint64_t bytes, bool writable);

}  // namespace rnicsim::host
