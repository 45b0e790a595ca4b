// Huge pages of a simulated host: mmap(2) with MAP_HUGETLB, shmget(2) with SHM_HUGETLB. The host has host.huge_pages of
// 2 MiB; behind them lies ordinary memory, at addresses and in sizes as Linux gives them.
#pragma once

#include <cstddef>

namespace rnicsim::clock {

struct HugePageCounts {
  unsigned long long total = 0;
  unsigned long long free = 0;
};
HugePageCounts huge_pages();  // the pages of the calling thread's host

// Whether the call asks for such pages without a file of its own, so that the host is to give them.
bool wants_huge_pages(int flags);
void* map_huge_pages(void* address, std::size_t bytes, int protection, int flags);  // as mmap()

// The size of a segment of `bytes` in whole pages; 0: the host has not so many.
std::size_t segment_bytes_in_huge_pages(std::size_t bytes);
void note_huge_segment(int real_number);
// Where such a segment may be attached; nullptr: nowhere.
void* place_for_huge_pages(std::size_t bytes);

}  // namespace rnicsim::clock
