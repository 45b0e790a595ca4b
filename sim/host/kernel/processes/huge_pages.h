// SPDX-License-Identifier: Apache-2.0
// Huge pages of a simulated host: mmap(2) with MAP_HUGETLB, shmget(2) with SHM_HUGETLB. The host has host.huge_pages
// pages of 2 MiB. They are ordinary memory at the addresses and with the sizes that Linux would give.
#pragma once

#include <cstddef>

namespace rnicsim::clock {

struct HugePageCounts {
  unsigned long long total = 0;
  unsigned long long free = 0;
};
HugePageCounts huge_pages();  // for the calling thread's host

// True: mmap() with these flags asks for huge pages without a file, and the host provides them.
bool wants_huge_pages(int flags);
void* map_huge_pages(void* address, std::size_t bytes, int protection, int flags);  // as mmap()

// `bytes` rounded up to whole huge pages; 0: the host has fewer free pages.
std::size_t segment_bytes_in_huge_pages(std::size_t bytes);
void note_huge_segment(int real_number);
// A free address for such a segment; nullptr: none.
void* place_for_huge_pages(std::size_t bytes);

}  // namespace rnicsim::clock
